"""A small random network as an ONNX file, written by hand: one convolution and a flattening, for tests of what takes
networks by path. The wire format is that of protocol buffers; only what this needs of it is here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FLOAT, INT, INTS = 1, 2, 7


def _number(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def _int(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _number(field << 3 | 2) + _number(len(data)) + data


def _ints(name: str, values: tuple[int, ...]) -> bytes:
    body = _bytes(1, name) + b"".join(_int(8, value) for value in values) + _int(20, INTS)
    return _bytes(5, body)


def _node(kind: str, inputs: tuple[str, ...], output: str, attributes: bytes = b"") -> bytes:
    body = b"".join(_bytes(1, name) for name in inputs) + _bytes(2, output) + _bytes(3, output) + _bytes(4, kind)
    return _bytes(1, body + attributes)


def _value(field: int, name: str, shape: tuple[int, ...]) -> bytes:
    dims = b"".join(_bytes(1, _int(1, size)) for size in shape)
    tensor = _int(1, FLOAT) + _bytes(2, dims)
    return _bytes(field, _bytes(1, name) + _bytes(2, _bytes(1, tensor)))


def face_network(path: Path, *, seed: int = 0, filters: int = 8, side: int = 16) -> Path:
    """Input (1, 3, 112, 112), output "fc1": random filters without a mean over patches of `side` pixels."""
    rng = np.random.default_rng(seed)
    kernels = rng.normal(size=(filters, 3, side, side)).astype("<f4")
    kernels -= kernels.mean(axis=(1, 2, 3), keepdims=True)
    steps = 112 // side
    tensor = b"".join(_int(1, size) for size in kernels.shape) + _int(2, FLOAT) + _bytes(8, "kernels")
    graph = (
        _node("Conv", ("data", "kernels"), "seen", _ints("kernel_shape", (side, side)) + _ints("strides", (side, side)))
        + _node("Flatten", ("seen",), "fc1")
        + _bytes(2, "faces")
        + _bytes(5, tensor + _bytes(9, kernels.tobytes()))
        + _value(11, "data", (1, 3, 112, 112))
        + _value(12, "fc1", (1, filters * steps * steps))
    )
    path.write_bytes(_int(1, 7) + _bytes(7, graph) + _bytes(8, _int(2, 13)))
    return path
