"""The one-file server of docker/segmenter, as a module and running on loopback."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from pathlib import Path
from types import ModuleType

HELPER = Path(__file__).parents[2] / "docker" / "segmenter" / "serve.py"


def helper() -> ModuleType:
    spec = importlib.util.spec_from_file_location("serve", HELPER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def running(server: HTTPServer) -> Iterator[str]:
    """The address of a server while it runs."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
