"""Worker processes on this machine: forked from the command where that is safe, else started from nothing.

A forked worker has what the command has loaded, and shares its memory: it is ready in no time, where one that starts
from nothing takes some seconds to import Beam and to load a vocabulary.
"""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from apache_beam.runners.worker import sdk_worker_main

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_MOMENT_SECONDS = 0.1
_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from pipelines.garbage import collect_seldom
collect_seldom()
import pipelines.runners
from apache_beam.runners.worker import sdk_worker_main
sdk_worker_main.main(None)
"""


class ForkedWorker:
    """A forked process that waits to be told what to work for; it ends when this process does.

    It has what callers need of `subprocess.Popen`.

    Args:
        process: The process.
        orders: Where to tell it.
    """

    def __init__(self, process: ForkProcess, orders: Connection) -> None:
        self._process = process
        self._orders = orders
        self.pid = process.pid

    def begin(self, environ: Mapping[str, str]) -> None:
        """Let it work, in such an environment."""
        with contextlib.suppress(BrokenPipeError):  # It is dead, which is seen by whoever waits for it.
            self._orders.send(dict(environ))

    @property
    def returncode(self) -> int | None:
        """Its exit status, or the number of the signal that ended it, below zero; None while it is alive."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self) -> int | None:
        """The same, once it has ended."""
        self._process.join()
        return self.returncode

    def communicate(self) -> None:
        """Wait for its end, as Beam's worker pool does."""
        self._process.join()

    def kill(self) -> None:
        """End it."""
        self._process.kill()


Worker: TypeAlias = "ForkedWorker | subprocess.Popen[bytes]"

_standing_by: list[ForkedWorker] = []
_started: list[Worker] = []


@contextlib.contextmanager
def standing_by(count: int) -> Iterator[None]:
    """Has so many workers wait, with all that is loaded by now, for those that are started within.

    There are none where it is not safe to fork: a thread may hold a lock that nobody would ever release in the new
    process, and gRPC must not have been used, which takes threads. On macOS the system's own libraries have some.

    Args:
        count: How many.
    """
    try:
        if _is_single_threaded():
            _fork(count)
        yield
    finally:
        end()


def start(control_url: str, worker_id: str, options: str) -> Worker:
    """Starts a worker.

    Args:
        control_url: Where it is told what to do.
        worker_id: How it is known there.
        options: Options of the pipeline, as JSON.
    """
    environ = {
        "GRPC_VERBOSITY": "ERROR",
        "RAYON_NUM_THREADS": "1",
        **os.environ,
        "CONTROL_API_SERVICE_DESCRIPTOR": f"url: {json.dumps(control_url)}",
        "PIPELINE_OPTIONS": options,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONSAFEPATH": "1",
        "WORKER_ID": worker_id,
    }
    worker: Worker
    try:
        worker = _standing_by.pop()
    except IndexError:
        worker = subprocess.Popen([sys.executable, "-c", _PROGRAM], env=environ, stdin=subprocess.DEVNULL)
    else:
        worker.begin(environ)
    _started.append(worker)
    return worker


def failed() -> list[int]:
    """Status of each worker that has ended, and not because its work was done."""
    return [status for worker in _started if (status := worker.poll())]


def end() -> None:
    """Ends all workers, at once."""
    for workers in (_started, _standing_by):
        while workers:
            worker = workers.pop()
            worker.kill()
            worker.wait()


def _is_single_threaded() -> bool:
    threads = Path("/proc/self/task")
    if not threads.is_dir():
        return False
    deadline = time.monotonic() + _MOMENT_SECONDS
    while len([*threads.iterdir()]) > 1:
        # A thread that Python has seen the end of is still there for a moment.
        if threading.active_count() > 1 or time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def _fork(count: int) -> None:
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(count)]
    # A look for rings would write to all that is there now, and so end its being shared.
    gc.freeze()
    senders = [sender for _, sender in pipes]
    for orders, sender in pipes:
        process = context.Process(target=_work, args=(orders, senders))
        process.start()
        orders.close()
        _standing_by.append(ForkedWorker(process, sender))


def _work(orders: Connection, senders: Sequence[Connection]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As long as any process holds one, its reader would not hear that the command is gone.
    for sender in senders:
        sender.close()
    try:
        os.environ.update(orders.recv())
    except EOFError:
        return
    sdk_worker_main.main(None)
