"""Commands in a session of their own, which tests interrupt or kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# As the command sets them before it imports anything, unlike a script that first changes what it finds there.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


@contextlib.contextmanager
def session(script: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A script of Python that can import what this process can; nothing of its session is left at the end."""
    with subprocess.Popen(
        [sys.executable, script, *map(str, arguments)],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def processes_of_session(session: int) -> list[str]:
    """The command lines of the processes of a session that are alive."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, its_session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def wait_until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)
