"""A small WebDriver client for headless Chromium: enough to open a page, press keys, read it and take its picture.

The browser and its driver are the operating system's (Debian: chromium, chromium-driver). Nothing is downloaded.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

BINARIES = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"


def missing() -> str:
    """Why there is no browser to drive, or an empty string."""
    if not any(shutil.which(name) for name in BINARIES):
        return "chromium is not installed (Debian: apt-get install chromium chromium-driver)"
    return "" if shutil.which(DRIVER) else "chromedriver is not installed (Debian: apt-get install chromium-driver)"


class Browser:
    """One headless window."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._root = f"/session/{session}"

    def open(self, path: Path) -> None:
        """Load a local file."""
        self._post("/url", {"url": path.resolve().as_uri()})

    def visit(self, url: str) -> None:
        """Load an address."""
        self._post("/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """Run JavaScript in the page; what it returns."""
        return self._post("/execute/sync", {"script": script, "args": list(args)})

    def wait(self, script: str, *, timeout_s: float = 10.0) -> Any:
        """Run JavaScript until it returns something true."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if found := self.run(script):
                return found
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def press(self, *keys: str) -> None:
        """Press keys one after the other, at whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def log(self) -> list[dict[str, Any]]:
        """What the page and the network complained of."""
        found: list[dict[str, Any]] = self._post("/se/log", {"type": "browser"})
        return found

    def picture(self, path: Path) -> None:
        """Save what is in the window as PNG."""
        answer = self._client.get(f"{self._root}/screenshot")
        path.write_bytes(base64.b64decode(answer.raise_for_status().json()["value"]))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(self._root + path, json=body)
        value = answer.json()["value"]
        if answer.is_error:
            raise AssertionError(f"{path}: {value.get('message', value)}")
        return value


@contextmanager
def browser(scratch: Path, *, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """A headless Chromium that is gone afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (scratch / "chromedriver.log").open("wb") as log:
        process = subprocess.Popen([DRIVER, f"--port={port}"], stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            _until_ready(client)
            binary = next(found for name in BINARIES if (found := shutil.which(name)))
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
            arguments += [f"--window-size={width},{height}", f"--user-data-dir={scratch / 'profile'}"]
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": binary, "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            answer = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}})
            assert not answer.is_error, answer.text
            session = answer.json()["value"]["sessionId"]
            try:
                yield Browser(client, session)
            finally:
                client.delete(f"/session/{session}")
    finally:
        process.terminate()
        process.wait(timeout=20)


def _until_ready(client: httpx.Client) -> None:
    for _ in range(200):
        try:
            if client.get("/status").json()["value"]["ready"]:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("chromedriver does not answer")
