"""Work in a copy of the process, which forgets what it met there: every lap meets its documents for the first time."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable
from typing import TypeVar, cast

_T = TypeVar("_T")


class IsolatedError(Exception):
    """Work in a copy of the process came to nothing."""


def isolated(work: Callable[[], _T], seconds: int) -> _T:
    """What some work gives, done in a copy of this process.

    Encoders remember texts that they have met, and fast ones gain most from it. Here they are loaded once, and yet
    remember nothing of a lap in the next one.

    Args:
        work: The work; what it gives must be picklable.
        seconds: Seconds after which it is given up.

    Raises:
        IsolatedError: If it raises, takes too long or ends the process.
    """
    reading, writing = os.pipe()
    # What is there now stays to the end: a copy that collects garbage need not touch it, which would copy it in full.
    gc.freeze()
    child = os.fork()
    if not child:
        _work_and_exit(work, writing, seconds)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if not answer:
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            raise IsolatedError(f"takes more than {seconds} s")
        raise IsolatedError("ends its process")
    found, problem = pickle.loads(answer)
    if problem:
        raise IsolatedError(problem)
    return cast("_T", found)


def _work_and_exit(work: Callable[[], object], writing: int, seconds: int) -> None:
    try:
        signal.alarm(seconds)
        try:
            answer = pickle.dumps((work(), ""))
        except BaseException as error:  # the panics of tiktoken are no Exception
            answer = pickle.dumps((None, say(error)))
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)


def say(error: BaseException) -> str:
    """What went wrong, in a line of a table."""
    if isinstance(error, ModuleNotFoundError):
        return f"not installed: {error.name}"
    if isinstance(error, NotImplementedError | IsolatedError):
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:80]}" + "…" * (len(text) > 80)
