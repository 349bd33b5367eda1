"""Runs that are broken off somewhere, what readers see then, and whether the same run finishes them.

`python tests/faults.py` breaks 260 and prints what came of it; the tests break a few.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds

from pipelines import read_table
from pipelines.cli import main as chunkmill

FILES = 24
MODES = ("overwrite", "incremental")

Rows = Counter[tuple[str, ...]]


@dataclass
class Seen:
    """What readers saw of a table after a run was broken off, and after the same run was started again.

    Args:
        ended: Exit status of the broken run; -9 if it was killed.
        manifest: Whether the readers of manifests saw the `old` table, the `new` one, or a `mixture`.
        folder: The same of readers of all files below `chunks/`.
        rerun: Exit status of the second run.
        verified: Exit status of `chunkmill verify` after it.
        lost: Rows of the new table that are missing after it.
        doubled: Rows that are there twice, or should not be there, after it.
        staged: Files left in staging after it.
    """

    ended: int
    manifest: str
    folder: str
    rerun: int
    verified: int
    lost: int
    doubled: int
    staged: int

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, and no reader of manifests saw half a run."""
        return self.manifest != "mixture" and not any(
            (self.rerun, self.verified, self.lost, self.doubled, self.staged)
        )


class Bench:
    """A table of some documents, and a run that brings what has become of them since.

    Args:
        folder: Where all of it lies.
        mode: Mode of the run.
        workers: Processes that do the work.
    """

    def __init__(self, folder: Path, mode: str, workers: int = 1) -> None:
        self._input, self._old, self._output = folder / "in", folder / "old", folder / "out"
        self._mode, self._workers = mode, workers
        self._log = folder / "log"
        self._input.mkdir(parents=True)
        for number in range(FILES):
            self._write(number, f"Ship {number} is in port. " * (number * 40 + 1))
        assert self._run(self._old) == 0, self._log.read_text()
        for number in range(0, FILES, 3):
            self._write(number, f"Ship {number} has left. " * (number * 40 + 2))
        for number in range(FILES, FILES + 4):
            self._write(number, f"Ship {number} is new. " * 50)
        self.before = in_manifest(self._old)
        began = time.monotonic()
        self._reset()
        assert self._run(self._output) == 0, self._log.read_text()
        self.seconds = time.monotonic() - began
        self.after = in_manifest(self._output)
        assert self.before != self.after == in_folder(self._output)

    def _write(self, number: int, text: str) -> None:
        path = self._input / f"{number:03}.txt"
        path.write_text(text)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def _reset(self) -> None:
        shutil.rmtree(self._output, ignore_errors=True)
        shutil.copytree(self._old, self._output)

    def _arguments(self, output: Path) -> list[str]:
        settings = "--tokenizer character --chunk_size 80 --shards 3 --task_bytes 20000".split()
        mode = ["--mode", self._mode, "--workers", str(self._workers)]
        return ["run", "--input", str(self._input), "--output", str(output), *settings, *mode]

    def _run(self, output: Path) -> int:
        return _wait(_fork(self._arguments(output), self._log))

    def break_off(self, fault: Callable[[Path], None], watch: Callable[[int, Path], None]) -> Seen:
        """Break off a run, look, and run it again.

        Args:
            fault: What is done to the run from within, given the output, before it begins.
            watch: What is done to it from without, given its process and the output.
        """
        self._reset()
        child = _fork(self._arguments(self._output), self._log, lambda: fault(self._output))
        watch(child, self._output)
        ended = _wait(child)
        seen = [self._state(in_manifest(self._output)), self._state(in_folder(self._output))]
        rerun = self._run(self._output)
        rows = in_folder(self._output)
        verified = _wait(_fork(["verify", str(self._output), "--input", str(self._input)], self._log))
        if rerun or verified:
            sys.stderr.write(self._log.read_text())
        return Seen(
            ended,
            *seen,
            rerun,
            verified,
            lost=(self.after - rows).total(),
            doubled=(rows - self.after).total(),
            staged=sum(path.is_file() for path in (self._output / "control/staging").rglob("*")),
        )

    def _state(self, rows: Rows) -> str:
        return "old" if rows == self.before else "new" if rows == self.after else "mixture"


def _fork(arguments: list[str], log: Path, first: Callable[[], None] = lambda: None) -> int:
    """A process of its own for a command, without the seconds that it takes to import everything."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        first()
        status = chunkmill(arguments)
    finally:
        os._exit(status)


def _wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_manifest(output: Path) -> Rows:
    """The rows that readers of manifests see."""
    return _rows(read_table(str(output)))


def in_folder(output: Path) -> Rows:
    """The rows that readers of all files see."""
    return _rows(ds.dataset([str(path) for path in sorted((output / "chunks").rglob("*.parquet"))]))


def _rows(table: ds.Dataset) -> Rows:
    columns = table.to_table(["chunk_id", "document_id", "text"]).to_pydict().values()
    return Counter(zip(*columns, strict=True))


# The faults.


def nothing(*_: object) -> None:
    """No fault."""


def killed_in_commit_after(seconds: float) -> Callable[[int, Path], None]:
    """Kill the run so long after it began to move files to where readers look."""

    def watch(child: int, output: Path) -> None:
        alive = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while not os.waitid(os.P_PID, child, alive) and not [*output.glob("control/staging/*/moves.json")]:
            time.sleep(0.0005)
        killed_after(seconds)(child, output)

    return watch


def killed_after(seconds: float) -> Callable[[int, Path], None]:
    """Kill the run."""

    def watch(child: int, _: Path) -> None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    return watch


def worker_killed_after(seconds: float) -> Callable[[int, Path], None]:
    """Kill one of the processes that work for the run."""

    def watch(child: int, _: Path) -> None:
        time.sleep(seconds)
        for path in Path(f"/proc/{child}/task").glob("*/children"):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, IndexError):
                os.kill(int(path.read_text().split()[0]), signal.SIGKILL)
                return

    return watch


def files_end_at(size: int) -> Callable[[Path], None]:
    """Let no file grow beyond so many bytes, as on a disk that is full."""
    return lambda output: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def clock_off_by(years: int) -> Callable[[Path], None]:
    """Let all that was written before be of another time, as if the clock had been wrong then or was now."""

    def fault(output: Path) -> None:
        moment = time.time() + years * 31_557_600
        for path in output.rglob("*"):
            os.utime(path, (moment, moment))

    return fault


Fault = Callable[[random.Random, float], tuple[Callable[[Path], None], Callable[[int, Path], None]]]
FAULTS: dict[str, Fault] = {
    "launcher killed": lambda chance, seconds: (nothing, killed_after(chance.uniform(0, seconds))),
    "launcher killed in the commit": lambda chance, _: (
        nothing,
        killed_in_commit_after(chance.uniform(0, 0.03)),
    ),
    "worker killed": lambda chance, seconds: (nothing, worker_killed_after(chance.uniform(0, seconds))),
    "disk full": lambda chance, _: (files_end_at(chance.choice([0, 10, 1_000, 5_000, 20_000])), nothing),
    "clock off": lambda chance, _: (clock_off_by(chance.choice([-30, -1, 1, 30])), nothing),
}


def trials(fault: str, mode: str, runs: int, seed: int = 0) -> Iterator[Seen]:
    """Break off some runs at random moments.

    Args:
        fault: One of `FAULTS`.
        mode: Mode of the runs.
        runs: How many.
        seed: What the moments are drawn by.
    """
    # What a child would import again and again.
    import pipelines.runners  # noqa: F401
    import transforms.waves  # noqa: F401

    chance = random.Random(f"{fault} {mode} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), mode, workers=2 if fault == "worker killed" else 1)
        for _ in range(runs):
            yield bench.break_off(*FAULTS[fault](chance, bench.seconds))


def main() -> None:
    """Break off many runs of each kind, and print a table of what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument(
        "--runs", type=int, help="of each kind; by default 50 that are killed and 10 of each other"
    )
    parser.add_argument("--seed", type=int, default=0, help="what the moments are drawn by")
    flags = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    bad = 0
    for fault in flags.faults:
        for mode in flags.modes:
            runs = flags.runs or (50 if fault.startswith("launcher") else 10)
            seen = list(trials(fault, mode, runs, flags.seed))
            bad += sum(not one.is_good for one in seen)
            print("| " + " | ".join([fault, mode, *map(str, counted(seen))]) + " |", flush=True)
    sys.exit(bad > 0)


COLUMNS = (
    "fault",
    "mode",
    "runs",
    "broken off",
    "readers of manifests saw the old table",
    "the new one",
    "a mixture",
    "readers of all files saw the old table",
    "the new one",
    "a mixture",
    "after the rerun: rows lost",
    "rows doubled",
    "staged files",
    "not finished",
)


def counted(seen: list[Seen]) -> list[int]:
    """The numbers of a row of the table."""
    return [
        len(seen),
        sum(one.ended != 0 for one in seen),
        *(sum(one.manifest == state for one in seen) for state in ("old", "new", "mixture")),
        *(sum(one.folder == state for one in seen) for state in ("old", "new", "mixture")),
        sum(one.lost for one in seen),
        sum(one.doubled for one in seen),
        sum(one.staged for one in seen),
        sum(bool(one.rerun or one.verified) for one in seen),
    ]


if __name__ == "__main__":
    main()
