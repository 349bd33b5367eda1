"""The whole job as its user runs it: `chunkmill run`, from Parquet to a committed table."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import corpus
from benchmarks.corpus import Text
from benchmarks.cutters import SIZE
from benchmarks.reference import cpu_seconds, plain_pass, reference
from benchmarks.report import Options, Table, draw, main, note, unlog

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZES = (10_000_000, 100_000_000, 500_000_000, 1_000_000_000)
_QUICK_SIZES = (2_000_000,)
_WORKERS = (1, 2)
_ROW_GROUP = 8_000_000
_LARGEST_FILE, _FILES = 64_000_000, 8
_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class Input:
    """Documents in Parquet files.

    Args:
        folder: Where the files are.
        base: The texts that they hold, again and again.
        documents: How many documents that makes.
        size: Bytes of their texts.
    """

    folder: Path
    base: Sequence[Text]
    documents: int
    size: int

    def plain_seconds(self) -> float:
        """CPU of a plain pass of tiktoken over the base, scaled to all of it."""
        spent = cpu_seconds(lambda: plain_pass(text.text for text in self.base))
        return spent * self.size / sum(text.size for text in self.base)


@dataclass(frozen=True)
class Measured:
    """A run of the job.

    Args:
        documents: Documents that it says it read.
        size: Bytes of their texts.
        workers: Worker processes.
        engine: What encoded.
        wall: Seconds from start to exit.
        cpu: CPU seconds of all of its processes.
        plain: CPU seconds of tiktoken over the same documents.
        largest: Peak of resident memory of its largest process, in bytes.
        memory: Peak of the sum over its processes, in bytes.
        chunks: Chunks in the table.
        lost: Characters that are in no chunk.
    """

    documents: int
    size: int
    workers: int
    engine: str
    wall: float
    cpu: float
    plain: float
    largest: int
    memory: int
    chunks: int
    lost: int


def run(options: Options) -> list[Table]:
    """The job by size of input and number of workers."""
    everything = list(corpus.texts(options.documents))
    reference()
    sizes = _QUICK_SIZES if options.quick else _SIZES
    found = []
    with tempfile.TemporaryDirectory() as compiled:
        environment = _compiled(Path(compiled), everything)
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                documents = _write(Path(folder) / "in", everything, size)
                for workers in _WORKERS:
                    note(f"job: {documents.size / 1e6:.0f} MB, {workers} workers")
                    found.append(_measure(documents, Path(folder) / f"out{workers}", workers, environment))
    draw(
        options.output / "job_memory.png",
        "Peak memory of the job by size of input",
        lambda axis: _lines(axis, found, "memory", "peak resident memory, MB", 1e6),
    )
    draw(
        options.output / "job_speed.png",
        "Throughput of the job by size of input, start included",
        lambda axis: _lines(axis, found, "speed", "MB of text per second", 1),
    )
    about = (
        f"`chunkmill run`, Parquet to a committed Parquet table on this machine, `recursive`, {SIZE} tokens of "
        f"cl100k_base, no overlap, engine `auto`. The input is the corpus, or an even sample where it is larger, "
        f"repeated under new ids, in {_FILES} files or more. All figures include start (of modules that are compiled, "
        f"as pip leaves them), the loading of the tokenizer, and commit. CPU ÷ tiktoken: CPU of all of its processes "
        f"by that of a plain `tiktoken.encode_ordinary` pass over the same documents (one round of them before and one "
        f"after the run, scaled; the fast encoder may remember words of earlier rounds). Memory: the sum over its "
        f"processes sampled every {_EVERY_SECONDS * 1000:.0f} ms, and the peak of the largest process as the kernel "
        f"keeps it. With one worker the job is one process; two are fed by a third."
    )
    header = (
        "input MB",
        "workers",
        "engine",
        "documents",
        "seconds",
        "documents/s",
        "MB/s",
        "CPU seconds",
        "CPU ÷ tiktoken",
        "peak MB, sum",
        "peak MB, largest",
        "seconds ÷ one worker's",
        "chunks",
        "characters lost",
    )
    return [Table("job", "The whole job", about, header, [_row(one, found) for one in found])]


def _row(one: Measured, found: Sequence[Measured]) -> list[str]:
    alone = next(other for other in found if other.size == one.size and other.workers == 1)
    return [
        f"{one.size / 1e6:,.0f}",
        str(one.workers),
        one.engine,
        f"{one.documents:,}",
        f"{one.wall:.1f}",
        f"{one.documents / one.wall:,.0f}",
        f"{one.size / 1e6 / one.wall:.1f}",
        f"{one.cpu:.1f}",
        f"{one.cpu / one.plain:.2f}",
        f"{one.memory / 1e6:,.0f}" if one.memory else "",
        f"{one.largest / 1e6:,.0f}",
        f"{one.wall / alone.wall:.2f}",
        f"{one.chunks:,}",
        f"{one.lost:,}",
    ]


def _compiled(folder: Path, everything: Sequence[Text]) -> dict[str, str]:
    """An environment in which all modules of the job are compiled, whatever this one keeps of them.

    Args:
        folder: Where compiled modules go.
        everything: The corpus.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "modules")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    documents = _write(folder / "in", everything, _QUICK_SIZES[0])
    for workers in _WORKERS:
        _measure(documents, folder / f"out{workers}", workers, environment)
    return environment


def _write(folder: Path, everything: Sequence[Text], size: int) -> Input:
    """Files that hold the corpus, or a sample of it, as often as it takes to reach a size."""
    folder.mkdir()
    base = corpus.sample(everything, size)
    file_size = min(_LARGEST_FILE, size // _FILES)
    writer: pq.ParquetWriter | None = None
    written = documents = total = 0
    for rows in _row_groups(base, size, min(_ROW_GROUP, file_size)):
        if writer is None or written >= file_size:
            if writer:
                writer.close()
            name = folder / f"documents-{total // file_size:05}.parquet"
            writer, written = pq.ParquetWriter(name, rows.schema, compression="zstd"), 0
        writer.write_table(rows, row_group_size=len(rows))
        step = sum(map(len, map(str.encode, rows["text"].to_pylist())))
        written, total, documents = written + step, total + step, documents + len(rows)
    if writer:
        writer.close()
    return Input(folder, base, documents, total)


def _row_groups(base: Sequence[Text], size: int, group_size: int) -> Iterator[pa.Table]:
    rows: list[dict[str, str]] = []
    held = total = 0
    for place in itertools.count():
        text = base[place % len(base)]
        document_id = f"{text.document_id}#{place // len(base)}"
        rows.append({"document_id": document_id, "text": text.text, "media_type": text.media_type})
        held, total = held + text.size, total + text.size
        if held >= group_size or total >= size:
            yield pa.Table.from_pylist(rows)
            rows, held = [], 0
        if total >= size:
            return


def _measure(documents: Input, output: Path, workers: int, environment: Mapping[str, str]) -> Measured:
    report_file = output.with_suffix(".json")
    command = [
        str(Path(sys.executable).with_name("chunkmill")),
        "run",
        *("--input", f"{documents.folder}/*.parquet", "--output", str(output), "--report", str(report_file)),
        *("--chunker", "recursive", "--chunk_size", str(SIZE), "--workers", str(workers)),
    ]
    plain = documents.plain_seconds()
    log = output.with_suffix(".log")
    with log.open("wb") as messages:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages
        )
        memory = _Memory(process.pid)
        memory.start()
        # Unlike the sum over all children so far, this tells of this one and its own children alone.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    memory.stop()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}:\n{log.read_text()[-2000:]}")
    plain = (plain + documents.plain_seconds()) / 2
    report = json.loads(report_file.read_text("utf-8"))
    if report["documents"]["in"] != documents.documents:
        raise SystemExit(f"{documents.documents} documents went in, the job reports {report['documents']}")
    return Measured(
        documents=report["documents"]["in"],
        engine=", ".join(report["engines"]),
        size=documents.size,
        workers=workers,
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        plain=plain,
        largest=memory.largest or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        memory=memory.total,
        chunks=report["chunks"],
        lost=report["lost_characters"],
    )


class _Memory(threading.Thread):
    """Watches the resident memory of a process and of all that it starts; Linux only, elsewhere it stays at 0.

    The kernel's own figure for a child, `ru_maxrss`, begins at the size of the process that started it.

    Attributes:
        largest: Peak of the largest process.
        total: Peak of the sum.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.largest = self.total = 0
        self._pid = pid
        self._over = threading.Event()

    def run(self) -> None:
        seen: set[int] = set()
        while not self._over.wait(_EVERY_SECONDS):
            found = {pid: sizes for pid in _tree(self._pid) if (sizes := _resident(pid))}
            # One that has only just started may still stand in the memory of its parent.
            old = [sizes for pid, sizes in found.items() if pid in seen]
            self.total = max(self.total, sum(now for now, _ in old))
            self.largest = max([self.largest, *(peak for _, peak in old)])
            seen = set(found)

    def stop(self) -> None:
        """End the watch."""
        self._over.set()
        self.join()


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue  # it has ended
        for child in found:
            yield from _tree(int(child))


def _resident(pid: int) -> tuple[int, int] | None:
    """Resident memory of a process now, and at its peak."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Vm")}
    return (sizes["VmRSS"], sizes["VmHWM"]) if "VmRSS" in sizes else None


def _lines(axis: Axes, found: Sequence[Measured], what: str, label: str, unit: float) -> None:
    for workers in _WORKERS:
        runs = [one for one in found if one.workers == workers]
        values = [one.memory if what == "memory" else one.size / 1e6 / one.wall for one in runs]
        name = "one worker" if workers == 1 else f"{workers} workers"
        axis.plot(
            [one.size / 1e6 for one in runs],
            [value / unit for value in values],
            "o-",
            label=name,
            clip_on=False,
        )
    axis.set_xscale("log")
    unlog(axis, "x", sorted({round(one.size / 1e6) for one in found}))
    axis.set_ylim(bottom=0)
    axis.set_xlabel("input, MB of text")
    axis.set_ylabel(label)
    axis.legend()


if __name__ == "__main__":
    main({"job": run})
