"""The embedded Prefect server's process: started by `flows.embedded.start`, ends when its parent does.

The parent holds the other end of this process's standard input. When the parent ends, in whatever way, the pipe
closes and the process exits at once; on Linux the kernel is asked to kill it as well. So nothing stays listening
after a `kill -9`. Not a server for production: see docs for running a real one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1


def main() -> None:
    port = int(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    import uvicorn

    uvicorn.run(
        "prefect.server.api.server:create_app",
        factory=True,
        host="127.0.0.1",
        port=port,
        log_level="critical",
        access_log=False,
    )


def _die_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
