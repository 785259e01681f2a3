"""The embedded Prefect server: it answers, it ends with its run, and it never outlives a kill -9."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

HOLD = (
    "import sys, time\nfrom pathlib import Path\nfrom flows.embedded.start import prefect\n"
    "import os\n"
    "with prefect(Path(sys.argv[1])):\n"
    "    print(os.environ['PREFECT_API_URL'], flush=True)\n"
    "    time.sleep(float(sys.argv[2]))\n"
)


def _hold(home: Path, seconds: float) -> tuple["subprocess.Popen[str]", str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home), str(seconds)], stdout=subprocess.PIPE, text=True, env=env
    )
    assert holder.stdout is not None
    return holder, holder.stdout.readline().strip()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health", timeout=5).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def _gone(pid: int) -> bool:
    path = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        if not path.exists() or path.read_text().split(")")[-1].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_no_server_is_left_behind(tmp_path: Path) -> None:
    killed, url = _hold(tmp_path, 600)
    assert _answers(url)
    told = json.loads(next((tmp_path / "prefect").glob("server-*.json")).read_text())
    assert told["parent"] == killed.pid
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert killed.stdout is not None
    killed.stdout.close()
    assert _gone(told["pid"])
    assert not _answers(url)

    second, url = _hold(tmp_path, 0.1)  # its start sweeps the note that the killed one left
    assert second.wait(timeout=60) == 0
    assert second.stdout is not None
    second.stdout.close()
    assert not _answers(url)
    assert list((tmp_path / "prefect").glob("server-*.json")) == []


@pytest.mark.parametrize(("status", "tries"), [(503, 3), (429, 3), (0, 3), (422, 1)])
def test_a_busy_server_is_asked_again_and_a_wrong_question_is_not(
    monkeypatch: pytest.MonkeyPatch, status: int, tries: int
) -> None:
    """A locked database or a restart passes; what the server does not understand stays wrong."""
    import httpx
    from prefect.exceptions import PrefectHTTPStatusError

    from engine.core.errors import TransientError
    from flows.embedded import inline

    asked: list[int] = []
    request = httpx.Request("POST", "http://127.0.0.1:4200/api/x")

    def ask() -> str:
        asked.append(1)
        if len(asked) > 2:
            return "made"
        if not status:
            raise httpx.ConnectError("refused", request=request)
        response = httpx.Response(status, request=request)
        raise PrefectHTTPStatusError("no", request=request, response=response)

    waits: list[float] = []
    monkeypatch.setattr(inline.time, "sleep", waits.append)
    if tries == 1:
        with pytest.raises(TransientError, match="did not answer"), inline.asking_the_server():
            inline.insist(ask)
    else:
        assert inline.insist(ask) == "made"
    assert len(asked) == tries
    assert waits == [1.0, 2.0][: tries - 1]
    asked.clear()
    with pytest.raises((httpx.ConnectError, PrefectHTTPStatusError)):
        inline.insist(ask, patience_s=0.0)
