"""Where and how models run: device, number type, and what to do when memory is short.

Nothing here knows a model. Weights stay float32; a smaller number type is reached by autocast, which leaves the few
operations that need float32 (soft-max over thousands of places, sampling grids) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from engine.core.errors import ConfigError, TerminalError, first_line

In = TypeVar("In")
Out = TypeVar("Out")


class OutOfMemory(TerminalError):
    """One single item does not fit into the device's memory. A stage turns it into a `Rejected` of that item."""


def pick_device(name: str) -> Any:
    """The torch device for a config value: auto (cuda where there is one, else cpu), cpu, cuda, cuda:1 ...

    Raises `ConfigError` if the named device is not there.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device {name!r} is not known: use auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {name!r} was asked for, torch sees {torch.cuda.device_count()} CUDA devices here: set device = "
            "auto or cpu, or install a torch build with CUDA"
        )
    return device


@contextmanager
def inference(device: Any, dtype: str = "float32") -> Iterator[None]:
    """No gradients, and autocast to `dtype` (float32, float16, bfloat16) unless it is float32."""
    import torch

    with torch.inference_mode():
        if dtype == "float32":
            yield
        else:
            with torch.autocast(device.type, dtype=getattr(torch, dtype)):
                yield


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the device, or the host for a CPU model, had no memory left."""
    import torch

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    # The CPU allocator has no type of its own.
    text = str(error)
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "not enough memory" in text)


def in_batches(
    items: Sequence[In], run: Callable[[Sequence[In]], Sequence[Out]], *, batch: int, what: str = "images"
) -> list[Out]:
    """Run `run` over batches of at most `batch` items; out of memory halves the batch and goes on from there.

    The smaller batch is kept for the rest of the call. Raises `OutOfMemory` when one item alone does not fit.
    """
    out: list[Out] = []
    size = max(1, batch)
    start = 0
    while start < len(items):
        part = items[start : start + size]
        failed = False
        try:
            out.extend(run(part))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if len(part) == 1:
                raise OutOfMemory(
                    f"a single one of the {what} does not fit into memory ({first_line(error)}): use a "
                    "smaller model, a smaller number type, or a device with more memory"
                ) from error
            failed = True
        if failed:
            # Outside the handler, so that the traceback no longer keeps the failed tensors alive.
            free_cache()
            size = max(1, len(part) // 2)
            continue
        start += len(part)
    return out


def free_cache() -> None:
    """Give cached CUDA blocks back; nothing on a CPU."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
