"""A local run sets its packs aside a wave at a time, and goes on after a kill with the waves that are not done."""

import gc
import json
import os
import pickle
import signal
import textwrap
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from sessions import session

pytest.importorskip("apache_beam")

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import transforms.waves
import transforms.write
from pipelines.cli import main
from transforms.chunk import ChunkDocuments
from transforms.chunkers import CHUNKERS, get_chunker
from transforms.parse import ParseDocuments
from transforms.parsers import ParseSettings, parse
from transforms.provenance import Run
from transforms.read import ReadDocuments
from transforms.records import RawDocument
from transforms.sources import ReadSettings, ReadTask, SourceFile
from transforms.spilled import Wave
from transforms.waves import RunInWaves
from transforms.write import WriteChunks

FILES = 6
RUN = Run("run", 0, shards=2)
TASK = ReadTask((SourceFile("/in/a.txt", 3),), 1)
PACKS = [(0, b"one"), (1, b"two"), (0, b"three")]


@pytest.fixture
def docs(tmp_path):
    """Documents of which each is a wave of its own, by `task_bytes`."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        write(folder / f"{number}.txt", f"Ship {number} is in port. " * (number + 1))
    return folder


def write(path, text):
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def arguments(docs, output, *more):
    cheap = ["--tokenizer", "character", "--chunk_size", 50, "--task_bytes", 1, "--shards", 3]
    return [str(argument) for argument in ("run", "--input", docs, "--output", output, *cheap, *more)]


def data(output):
    """Digest of every file but for the reports, which tell how long a run took."""
    return {
        str(file.relative_to(output)): sha256(file.read_bytes()).hexdigest()
        for file in output.rglob("*")
        if file.is_file() and "runs" not in file.parts
    }


def staged(output):
    return [file for file in (output / "control/staging").rglob("*") if file.is_file()]


# A run that is killed.

KILLED = """
    import os, signal, sys
    from pathlib import Path
    import transforms.waves

    class Wave(transforms.waves.Wave):
        def __init__(self, task, run, output):
            super().__init__(task, run, output)
            self.name = Path(task.files[0].uri).name

        def spill(self, packs):
            done = Path(DONE)
            count = len(list(done.iterdir()))
            if INSIDE and count >= KILLED_AT:
                packs = self.killed_after_one(packs)
            found = super().spill(packs)
            (done / self.name).touch()
            if not INSIDE and count + 1 >= KILLED_AT:
                self.kill()
            return found

        def killed_after_one(self, packs):
            yield next(packs)
            self.kill()

        def kill(self):
            os.kill(os.getppid() if LAUNCHER_IS_PARENT else os.getpid(), signal.SIGKILL)
            if LAUNCHER_IS_PARENT:
                os.kill(os.getpid(), signal.SIGKILL)

    transforms.waves.Wave = Wave
"""
COMMAND = """
    import sys
    from pipelines import cli, worker_processes

    worker_processes._PROGRAM = KILLED + worker_processes._PROGRAM
    exec(KILLED)
    sys.exit(cli.main(sys.argv[1:]))
"""


def killed_run(tmp_path, command, *, inside, at, workers):
    """Run a command that is killed at some wave; gives the names of the inputs whose waves are done."""
    done = tmp_path / "done"
    done.mkdir()
    facts = {"DONE": str(done), "INSIDE": inside, "KILLED_AT": at, "LAUNCHER_IS_PARENT": workers > 1}
    killed = "".join(f"{name} = {value!r}\n" for name, value in facts.items()) + textwrap.dedent(KILLED)
    script = tmp_path / "command.py"
    script.write_text(f"KILLED = {killed!r}\n{textwrap.dedent(COMMAND)}")
    with session(script, *command, "--workers", workers) as process:
        _, errors = process.communicate(timeout=150)
        assert process.returncode == -signal.SIGKILL, errors.decode()
    return [file.name for file in done.iterdir()]


@pytest.mark.parametrize(
    ("inside", "at", "workers"),
    [(False, 1, 1), (True, 2, 1), (False, FILES, 1), (True, 3, 2)],
    ids=["between waves", "inside a wave", "after the last wave", "inside a wave of a worker process"],
)
def test_rerun_after_a_kill_reads_only_what_was_not_done_and_makes_the_same_bytes(
    tmp_path, docs, inside, at, workers
):
    assert main(arguments(docs, tmp_path / "undisturbed")) == 0
    expected = data(tmp_path / "undisturbed")
    command = arguments(docs, tmp_path / "out")

    done = killed_run(tmp_path, command, inside=inside, at=at, workers=workers)

    assert at <= len(done) < FILES + (not inside)
    assert staged(tmp_path / "out")
    for name in done:
        # Same name, size and time: who reads it again makes another table.
        write(docs / name, "x" * (docs / name).stat().st_size)
    assert main(command) == 0
    assert data(tmp_path / "out") == expected


def test_wave_that_was_cut_off_is_read_again(tmp_path, docs):
    command = arguments(docs, tmp_path / "out")
    done = killed_run(tmp_path, command, inside=True, at=2, workers=1)
    (other, *_) = sorted({file.name for file in docs.iterdir()} - set(done))

    write(docs / other, "y" * (docs / other).stat().st_size)

    assert main(command) == 0
    assert main(arguments(docs, tmp_path / "new")) == 0
    assert data(tmp_path / "out") == data(tmp_path / "new")


# A run that fails.


def fail(*arguments):
    raise OSError("No space left on device")


def failed_run(docs, output, monkeypatch, *more):
    with monkeypatch.context() as patch:
        patch.setattr(transforms.write, "write_shard", fail)
        with pytest.raises(OSError, match="No space left"):
            main(arguments(docs, output, *more))


def test_failed_run_leaves_only_its_waves_and_the_rerun_clears_them(tmp_path, docs, monkeypatch):
    failed_run(docs, tmp_path / "out", monkeypatch)

    left = staged(tmp_path / "out")
    assert {file.parent.name for file in left} == {"waves"}
    assert sum(file.suffix == ".json" for file in left) == FILES
    monkeypatch.setattr(transforms.waves.Wave, "spill", fail)
    assert main(arguments(docs, tmp_path / "out")) == 0
    assert staged(tmp_path / "out") == []


@pytest.mark.parametrize("change", [["--chunk_size", 7], ["--shards", 5], ["--keep_text"]])
def test_waves_of_other_settings_are_not_taken_even_under_the_same_run_id(
    tmp_path, docs, monkeypatch, change
):
    named = ["--run_id", "nightly"]
    failed_run(docs, tmp_path / "out", monkeypatch, *named)

    assert main(arguments(docs, tmp_path / "out", *named, *change)) == 0
    assert main(arguments(docs, tmp_path / "new", *named, *change)) == 0

    assert data(tmp_path / "out") == data(tmp_path / "new")


def test_waves_of_a_run_that_never_ended_disturb_no_other_and_vacuum_removes_them(
    tmp_path, docs, monkeypatch
):
    failed_run(docs, tmp_path / "out", monkeypatch, "--chunk_size", 7)
    assert main(arguments(docs, tmp_path / "out")) == 0
    assert staged(tmp_path / "out")
    assert main(["verify", str(tmp_path / "out"), "--input", str(docs)]) == 0

    assert main(["vacuum", str(tmp_path / "out"), "--older_than", "0"]) == 0

    assert staged(tmp_path / "out") == []


# What flows through Beam.


def test_beam_holds_references_and_no_packs(tmp_path, docs):
    sizes = tmp_path / "sizes"
    sizes.mkdir()

    class Watched(WriteChunks):
        def write(self, packs):
            def watch(pack):
                _, value = pack
                (sizes / f"{type(value).__name__}-{uuid4().hex}").write_text(str(len(pickle.dumps(value))))
                return pack

            return super().write(packs | "Watch" >> beam.Map(watch))

    read = ReadDocuments([str(docs)], ReadSettings(task_bytes=1))
    chunk = ChunkDocuments("recursive", tokenizer="character", chunk_size=50)
    write = Watched(str(tmp_path / "out"), RUN, chunk.chunker.record)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | RunInWaves(read, ParseDocuments(), chunk, write)

    seen = list(sizes.iterdir())
    assert len(seen) == FILES
    assert {file.name.partition("-")[0] for file in seen} == {"Spilled"}
    assert max(int(file.read_text()) for file in seen) < 500


def test_packs_are_written_as_they_come(tmp_path):
    """A wave of any size holds one pack."""
    wave = Wave(TASK, RUN, str(tmp_path))

    def packs():
        for _ in range(50):
            yield 0, os.urandom(1 << 16)
            seen.append(sum(file.stat().st_size for file in tmp_path.rglob("*.packs")))

    seen: list[int] = []
    wave.spill(packs())
    assert seen == [(number + 1) << 16 for number in range(50)]


TEXTS = {
    "text/markdown": "# Ships\n\nIn port.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```py\nx = 1\n```\n" * 9,
    "text/html": "<h1>Ships</h1><p>In port.</p><table><tr><td>1</td><td>2</td></tr></table>" * 9,
    "text/x-rst": "Ships\n=====\n\nIn port.\n\n::\n\n    x = 1\n\n" * 9,
    "text/x-python": "def ship():\n    return 1\n\n\n" * 9,
    "application/json": json.dumps([{"ship": number} for number in range(9)]),
    "text/csv": "ship,port\n1,2\n" * 9,
    "text/plain": b"Bytes \xff\xfe of no encoding. " * 9,
}


@pytest.mark.parametrize("name", CHUNKERS)
def test_document_is_freed_without_the_garbage_collector_which_a_run_hardly_ever_starts(name):
    chunker = get_chunker(name, tokenizer="character", chunk_size=50)

    def cut():
        for media_type, content in TEXTS.items():
            chunker.chunk_document(parse(RawDocument("d", content, media_type), ParseSettings()))

    cut()  # makes what is made once
    gc.collect()
    gc.disable()
    try:
        cut()
        assert gc.collect() == 0
    finally:
        gc.enable()


# One wave.


@pytest.fixture(params=["file", "memory"])
def output(request, tmp_path):
    """Root of a table on disk, and in a store."""
    if request.param == "file":
        yield str(tmp_path)
        return
    yield f"memory://waves-{uuid4().hex}"
    fsspec.filesystem("memory").store.clear()


def test_packs_come_back_by_shard_in_their_order(output):
    assert Wave(TASK, RUN, output).spilled() is None

    spilled = Wave(TASK, RUN, output).spill(PACKS)

    assert Wave(TASK, RUN, output).spilled() == spilled
    assert {shard: found.read(output) for shard, found in spilled.items()} == {
        0: [b"one", b"three"],
        1: [b"two"],
    }


def test_packs_are_compressed_only_on_their_way_to_a_store(tmp_path):
    assert Wave(TASK, RUN, str(tmp_path)).compression is None
    assert Wave(TASK, RUN, f"memory://waves-{uuid4().hex}").compression == "lz4"


def test_wave_without_documents_is_done_too(output):
    Wave(TASK, RUN, output).spill([])
    assert Wave(TASK, RUN, output).spilled() == {}


def test_wave_that_failed_is_not_done(output):
    def packs():
        yield PACKS[0]
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network"):
        Wave(TASK, RUN, output).spill(packs())
    assert Wave(TASK, RUN, output).spilled() is None


def test_wave_that_is_not_all_on_disk_is_not_done(tmp_path):
    Wave(TASK, RUN, str(tmp_path)).spill(PACKS)
    (file,) = tmp_path.rglob("*.packs")
    file.write_bytes(file.read_bytes()[:-1])
    assert Wave(TASK, RUN, str(tmp_path)).spilled() is None


@pytest.mark.parametrize(
    ("task", "run"),
    [
        (replace(TASK, files=(SourceFile("/in/a.txt", 3, modified_at=1),)), RUN),
        (replace(TASK, row_groups=(1,)), RUN),
        (TASK, replace(RUN, shards=3)),
        (TASK, replace(RUN, keep_text=True)),
        (TASK, replace(RUN, settings={"chunk_size": 7})),
    ],
)
def test_another_file_or_setting_is_another_wave(tmp_path, task, run):
    Wave(TASK, RUN, str(tmp_path)).spill(PACKS)
    assert Wave(task, run, str(tmp_path)).spilled() is None
    assert Wave(TASK, replace(RUN, created_at=9, job_id="j"), str(tmp_path)).spilled() is not None


def test_packs_that_are_gone_are_told(tmp_path):
    spilled = Wave(TASK, RUN, str(tmp_path)).spill(PACKS)
    for file in tmp_path.rglob("*.packs"):
        file.unlink()
    with pytest.raises(FileNotFoundError):
        spilled[0].read(str(tmp_path))


def test_marker_tells_where_each_pack_lies(tmp_path):
    Wave(TASK, RUN, str(tmp_path)).spill(PACKS)
    (marker,) = (tmp_path / "control/staging/run/waves").glob("*.json")
    facts = json.loads(marker.read_text())
    packs = Path(tmp_path, facts.pop("path")).read_bytes()
    assert facts == {"size": 11, "shards": {"0": [[0, 3], [6, 11]], "1": [[3, 6]]}}
    assert packs == b"onetwothree"
