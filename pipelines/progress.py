"""What a person sees while a run goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.chunk_corpus import Job


@contextmanager
def progress(job: Job) -> Iterator[None]:
    """A moving line on a terminal, plain lines in a log; both on standard error.

    Beam tells nothing before the end of a run, so the line shows that it goes on, and for how long.

    Args:
        job: The job that is about to run.
    """
    size = sum(file.size for file in job.files)
    told = (
        f"run {job.run.run_id}: {_counted(len(job.files), 'file')}, {size / 1e6:,.2f} MB, "
        f"{_counted(job.run.shards, 'shard')}, "
        f"chunker {job.settings.chunker.name} {job.settings.chunker.fingerprint()}, "
        f"{job.settings.job.runner} with {_counted(job.settings.job.workers, 'worker')}"
    )
    if not sys.stderr.isatty():
        began = time.monotonic()
        print(told, file=sys.stderr, flush=True)
        yield
        print(f"run {job.run.run_id}: done in {time.monotonic() - began:.1f} s", file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(told)
        yield


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
