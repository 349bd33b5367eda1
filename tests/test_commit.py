"""From staged files to one committed run."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from crashes import copy, dies_after, tree
from staged import staged

from transforms import commit as commit_module
from transforms.commit import Table, abort, check_output, commit
from transforms.errors import CommitError, ConfigError
from transforms.paths import FileEntry
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Source
from transforms.run_report import Report
from transforms.schemas import CHUNKERS, CHUNKS, SCHEMAS

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "characters", "ff", 10)
OTHER = replace(CHUNKER, hash="fedcba9876543210")
FIRST = Run("first", 1_000_000)
SECOND = Run("second", 2_000_000)

Element = DocumentChunks | DeadLetter


def cut(
    document_id: str, text: str, source: str = "corpus", chunker: ChunkerRecord = CHUNKER
) -> DocumentChunks:
    """A document that is one chunk."""
    name = hashlib.sha256(repr((document_id, text, chunker.hash)).encode()).hexdigest()[:32]
    span = (0, len(text))
    chunk = Chunk(name, document_id, 0, text, len(text), (span,), span, 0, (1, 1), "body", "recursive")
    return DocumentChunks(Document(document_id, text, source=Source(source)), [chunk], "ok", chunker)


def stage(output: str, run: Run, *elements: Element) -> list[FileEntry]:
    """Write `elements` as the shards of `run`."""
    return staged(output, run, elements, CHUNKER)


def write(output: str, run: Run, *elements: Element) -> Report:
    """Write `elements` and commit them."""
    return commit(stage(output, run, *elements), run, output, [CHUNKER])


def texts(output: str) -> list[str]:
    """Texts of the chunks that the manifests name."""
    files = tree(output)
    tables = [
        pq.read_table(pa.BufferReader(files[p])) for p in Table(output).files if p.startswith("chunks/")
    ]
    return sorted(text for table in tables for text in table["text"].to_pylist())


def globbed(output: str) -> list[str]:
    """Texts of all chunk files that there are, which is what a plain reader of the folder sees."""
    tables = [
        pq.read_table(pa.BufferReader(data))
        for path, data in tree(output).items()
        if path.startswith("chunks/")
    ]
    return sorted(text for table in tables for text in table["text"].to_pylist())


# One run.


def test_a_run_is_in_the_table_with_its_manifest_report_and_chunker(output: str) -> None:
    letter = DeadLetter("c", "read", "broken", "m", Source("corpus"))
    entries = stage(output, FIRST, cut("a", "A"), cut("b", "B"), letter)
    report = commit(entries, FIRST, output, [CHUNKER])
    files = tree(output)
    (came,) = (entry.path for entry in Table(output).files.values() if entry.kind == "changes")
    assert set(files) == {entry.path for entry in entries} | {
        came,
        "control/LATEST",
        "control/commits/00000001.json",
        "control/runs/first.json",
        "chunkers/recursive-0123456789ab.parquet",
    }
    for entry in entries:
        assert hashlib.sha256(files[entry.path]).hexdigest() == entry.sha256

    manifest = json.loads(files["control/commits/00000001.json"])
    assert [added["path"] for added in manifest["added"]] == [came, *sorted(entry.path for entry in entries)]
    assert (manifest["run_id"], manifest["parent"], manifest["removed"]) == ("first", None, [])
    assert manifest["chunkers"]["recursive-0123456789ab"]["settings"] == CHUNKER.settings
    assert manifest["totals"]["chunks"]["rows"] == 2
    assert json.loads(files["control/LATEST"]) == {"seq": 1, "manifest": "control/commits/00000001.json"}
    assert json.loads(files["control/runs/first.json"]) == report
    assert (report["outcome"], report["documents"]["in"], report["documents"]["failed"]) == (
        "committed",
        3,
        1,
    )

    chunkers = pq.read_table(pa.BufferReader(files["chunkers/recursive-0123456789ab.parquet"]))
    assert chunkers.schema.equals(CHUNKERS)
    assert chunkers.to_pylist()[0]["chunker_hash"] == CHUNKER.hash


def test_a_table_is_what_its_manifests_say(output: str) -> None:
    assert not Table(output).exists
    entries = stage(output, replace(FIRST, shards=4), cut("a", "A"), cut("b", "B"))
    commit(entries, replace(FIRST, shards=4), output)
    table = Table(output)
    assert (table.exists, table.seq, table.shards) == (True, 1, 4)
    files = {path: entry for path, entry in table.files.items() if entry.kind != "changes"}
    assert files == {e.path: replace(e, staged="", chunker=None, tally={}) for e in entries}


def test_the_same_run_again_writes_nothing_and_says_so(output: str) -> None:
    first = write(output, FIRST, cut("a", "A"), cut("b", "B"))
    before = tree(output)
    again = write(output, FIRST, cut("b", "B"), cut("a", "A"))
    assert tree(output) == before
    assert first["files"].pop("changes")["rows"] == 2
    assert again["files"].pop("changes")["rows"] == 0
    assert again == {**first, "outcome": "unchanged"}


def test_a_commit_that_is_repeated_after_its_end_does_no_harm(output: str) -> None:
    entries = stage(output, FIRST, cut("a", "A"))
    commit(entries, FIRST, output)
    before = tree(output)
    assert commit(entries, FIRST, output)["outcome"] == "unchanged"
    assert tree(output) == before


def test_a_run_without_documents_leaves_a_table_that_readers_find(tmp_path: Path) -> None:
    report = commit([], FIRST, str(tmp_path), [CHUNKER])
    dataset = ds.dataset(tmp_path / "chunks", partitioning="hive")
    assert dataset.schema.names == [*CHUNKS.names, "chunker", "source"]
    assert dataset.count_rows() == 0
    assert (report["outcome"], report["chunks"], report["documents"]["in"]) == ("committed", 0, 0)
    assert commit([], FIRST, str(tmp_path), [CHUNKER])["outcome"] == "unchanged"
    assert len(Table(str(tmp_path)).files) == 1


def test_the_empty_file_goes_when_there_are_chunks(output: str) -> None:
    commit([], FIRST, output)
    write(output, replace(SECOND, mode="append"), cut("a", "A"))
    assert [entry.rows for entry in Table(output).files.values() if entry.kind == "chunks"] == [1]
    assert globbed(output) == ["A"]


def test_a_table_in_which_every_document_fails_keeps_a_chunk_file(output: str) -> None:
    letter = DeadLetter("a", "read", "broken", "m", Source("corpus"))
    for run in (FIRST, SECOND):
        report = write(output, run, letter)
        assert report["documents"] == {"in": 1, "ok": 0, "blank": 0, "skipped": 0, "failed": 1}
    assert [entry.rows for entry in Table(output).files.values() if entry.kind == "chunks"] == [0]


def test_nothing_in_settings_breaks_the_manifest(output: str) -> None:
    run = replace(FIRST, settings={"input": "/data/\udce9.txt"})
    assert write(output, run, cut("a", "A"))["outcome"] == "committed"
    last = Table(output).last
    assert last
    assert last["settings"] == {"input": "/data/\udce9.txt"}


# Modes.


def test_overwrite_replaces_the_partitions_it_covers_and_no_other(output: str) -> None:
    write(
        output,
        FIRST,
        cut("a", "old"),
        cut("b", "news", "news"),
        cut("c", "old, other chunker", chunker=OTHER),
    )
    letter = DeadLetter("x", "read", "broken", "m", Source("corpus"))
    report = write(output, replace(SECOND, mode="append"), letter)
    assert report["replaced_files"] == 0

    report = write(output, replace(SECOND, run_id="third"), cut("a", "new"))
    assert texts(output) == globbed(output) == ["new", "news", "old, other chunker"]
    assert not any(path.startswith("dead_letters/") for path in Table(output).files)
    assert set(Table(output).files) == {
        p for p in tree(output) if not p.startswith(("control/", "chunkers/"))
    }
    assert report["replaced_files"] == 4


def test_append_adds(output: str) -> None:
    write(output, FIRST, cut("a", "A"))
    append = replace(SECOND, mode="append")
    write(output, append, cut("b", "B"))
    assert texts(output) == globbed(output) == ["A", "B"]
    assert write(output, append, cut("b", "B"))["outcome"] == "unchanged"
    assert Table(output).seq == 2


def test_a_run_with_another_number_of_shards_is_refused_and_leaves_nothing(output: str) -> None:
    write(output, FIRST, cut("a", "A"))
    before = tree(output)
    for mode in ("append", "overwrite"):
        run = replace(SECOND, mode=mode, shards=3)
        with pytest.raises(CommitError, match="run second has 3 shards, but the table has 1"):
            write(output, run, cut("b", "B", "elsewhere"))
        assert tree(output) == before


def test_error_if_exists_is_refused_at_the_commit_too(output: str) -> None:
    run = replace(FIRST, mode="error_if_exists")
    write(output, run, cut("a", "A"))
    before = tree(output)
    assert write(output, run, cut("a", "A"))["outcome"] == "unchanged"
    with pytest.raises(CommitError, match="the mode is error_if_exists"):
        write(output, replace(SECOND, mode="error_if_exists"), cut("b", "B"))
    assert tree(output) == before


# Handed case rerun-retry-03.
def test_a_rerun_with_other_shards_or_settings_never_mixes_with_the_run_before(tmp_path: Path) -> None:
    def documents(chunker: ChunkerRecord) -> list[DocumentChunks]:
        return [cut(f"d{number}", f"Row {number}.", chunker=chunker) for number in range(8)]

    output = str(tmp_path)
    write(output, replace(FIRST, shards=4), *documents(CHUNKER))
    ids = set(ds.dataset(tmp_path / "chunks").to_table()["chunk_id"].to_pylist())
    write(output, replace(SECOND, shards=2), *documents(CHUNKER))
    table = ds.dataset(tmp_path / "chunks").to_table()
    assert len(table) == 8
    assert set(table["chunk_id"].to_pylist()) == ids
    assert set(table["run_id"].to_pylist()) == {"second"}
    assert all("-of-00002-" in path for path in Table(output).files if not path.startswith("changes/"))

    write(output, replace(SECOND, run_id="third", shards=2), *documents(OTHER))
    folder = tmp_path / "chunks" / "chunker=recursive-fedcba987654"
    table = ds.dataset(folder).to_table()
    assert (len(table), set(table["chunker_hash"].to_pylist())) == (8, {OTHER.hash})
    assert not ids & set(table["chunk_id"].to_pylist())


# Crashes: after every single operation on the store.


CRASHES = {
    "first run": ([], FIRST, [cut("a", "A"), DeadLetter("x", "read", "broken", "m", Source("corpus"))]),
    "overwrite": ([cut("a", "old"), cut("b", "B", "other")], SECOND, [cut("a", "new"), cut("c", "C")]),
    "append": ([cut("a", "old")], replace(SECOND, mode="append"), [cut("b", "B"), cut("c", "C", "other")]),
    "nothing": ([], FIRST, []),
}


@pytest.mark.parametrize("scene", CRASHES)
def test_a_crash_at_any_point_leaves_the_old_table_or_the_new_one(scene: str, output: str) -> None:
    before, run, after = CRASHES[scene]
    if before:
        write(output, replace(FIRST, run_id="zero"), *before)
    old_files = set(Table(output).files)
    entries = stage(output, run, *after)
    copy(output, f"{output}-done")
    commit(entries, run, f"{output}-done", [CHUNKER])
    new = tree(f"{output}-done")
    new_files = set(Table(f"{output}-done").files)

    for operations in range(1000):
        crashed, aborted = f"{output}-{operations}", f"{output}-{operations}-aborted"
        copy(output, crashed)
        if not dies_after(operations, commit, entries, run, crashed, [CHUNKER]):
            break

        found = Table(crashed)
        files = tree(crashed)
        assert set(found.files) in (old_files, new_files)
        assert all(
            hashlib.sha256(files[path]).hexdigest() == entry.sha256 for path, entry in found.files.items()
        )

        copy(crashed, aborted)
        abort(aborted, run.run_id)
        files = tree(aborted)
        data = {path for path in files if path.partition("/")[0] in SCHEMAS}
        assert data == set(found.files)
        assert not [path for path in files if path.startswith("control/staging/")]

        commit(entries, run, crashed, [CHUNKER])
        assert tree(crashed) == new
    else:
        pytest.fail("the commit never came to its end")
    assert tree(crashed) == new
    assert operations > 10


def test_what_a_crashed_run_did_not_remove_the_next_run_removes(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(output, FIRST, cut("a", "old"))
    with monkeypatch.context() as patch:
        patch.setattr(commit_module, "_finish", lambda store, manifest: None)
        write(output, SECOND, cut("a", "new"))
    assert (texts(output), globbed(output)) == (["new"], ["new", "old"])
    write(output, replace(SECOND, run_id="third", mode="append"), cut("b", "B", "other"))
    assert texts(output) == globbed(output) == ["B", "new"]


# Two at a time.


def test_of_two_runs_that_commit_at_once_the_slower_is_told(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(output, replace(FIRST, run_id="zero"), cut("a", "old"))
    slow = stage(output, FIRST, cut("a", "slow"))
    publish = commit_module._publish

    def overtaken(store: Any, manifest: Any) -> None:
        monkeypatch.setattr(commit_module, "_publish", publish)
        write(output, SECOND, cut("a", "fast"))
        publish(store, manifest)

    monkeypatch.setattr(commit_module, "_publish", overtaken)
    with pytest.raises(CommitError, match="run second made commit 2 while run first was at work"):
        commit(slow, FIRST, output)
    assert texts(output) == globbed(output) == ["fast"]
    assert not [path for path in tree(output) if path.startswith("control/staging/")]
    assert write(output, FIRST, cut("a", "slow"))["seq"] == 3


def test_only_one_of_many_committers_gets_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, count = str(tmp_path), 6
    runs = [Run(f"run{number}", number, mode="append") for number in range(count)]
    staged = [stage(output, run, cut(run.run_id, run.run_id)) for run in runs]
    line, publish = threading.Barrier(count), commit_module._publish

    def together(store: Any, manifest: Any) -> None:
        line.wait()
        publish(store, manifest)

    monkeypatch.setattr(commit_module, "_publish", together)
    outcomes: list[str] = []

    def race(run: Run, entries: list[FileEntry]) -> None:
        try:
            outcomes.append(commit(entries, run, output)["outcome"])
        except CommitError:
            outcomes.append("refused")

    threads = [threading.Thread(target=race, args=pair) for pair in zip(runs, staged, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["committed"] + ["refused"] * (count - 1)
    assert len(texts(output)) == 1
    assert texts(output) == globbed(output)


def test_a_manifest_whose_answer_was_lost_counts(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create = commit_module.Store.create

    def lost(self: Any, path: str, data: bytes) -> None:
        create(self, path, data)
        raise ConnectionError("the answer was lost")

    monkeypatch.setattr(commit_module.Store, "create", lost)
    assert write(output, FIRST, cut("a", "A"))["outcome"] == "committed"
    assert texts(output) == ["A"]


# What is not touched.


def test_a_manifest_that_names_a_file_outside_of_the_table_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "precious.parquet"
    precious.write_bytes(b"mine")
    output = str(tmp_path / "table")
    write(output, FIRST, cut("a", "A"))
    manifest = tmp_path / "table" / "control" / "commits" / "00000001.json"
    facts = json.loads(manifest.read_bytes())
    for name in ("../precious.parquet", "chunks/../../precious.parquet", str(precious), "control/LATEST"):
        manifest.write_text(json.dumps({**facts, "removed": [name]}))
        with pytest.raises(CommitError, match="no data file of a table"):
            write(output, SECOND, cut("a", "B"))
    assert precious.read_bytes() == b"mine"


@pytest.mark.parametrize("run_id", ["../../..", "..", ".", "", "/"])
def test_an_abort_removes_nothing_but_its_own_staging(tmp_path: Path, run_id: str) -> None:
    (tmp_path / "mine").write_text("mine")
    output = str(tmp_path / "table")
    write(output, FIRST, cut("a", "A"))
    staged = stage(output, SECOND, cut("b", "B"))
    before = tree(str(tmp_path))
    abort(output, run_id)
    assert tree(str(tmp_path)) == before
    abort(output, "second")
    assert tree(str(tmp_path)).keys() == before.keys() - {f"table/{entry.staged}" for entry in staged}


def test_files_of_others_in_the_output_stay(tmp_path: Path) -> None:
    output = str(tmp_path)
    write(output, FIRST, cut("a", "A"))
    other = tmp_path / "chunks" / "notes.txt"
    other.write_text("mine")
    write(output, SECOND, cut("a", "B"))
    assert other.read_text() == "mine"


def test_a_missing_or_broken_manifest_is_told(tmp_path: Path) -> None:
    output = str(tmp_path)
    write(output, FIRST, cut("a", "A"))
    write(output, SECOND, cut("a", "B"))
    commits = tmp_path / "control" / "commits"
    (commits / "00000002.json").write_text("{")
    with pytest.raises(CommitError, match=r"00000002.json is no manifest"):
        Table(output)
    (commits / "00000002.json").rename(commits / "00000003.json")
    (commits / "00000003.json").write_bytes((commits / "00000001.json").read_bytes())
    with pytest.raises(CommitError, match="the manifest of commit 2 is missing"):
        Table(output)


# Checked before any work.


def test_an_output_that_can_be_written_passes_and_is_left_empty(output: str) -> None:
    for mode in ("overwrite", "append", "error_if_exists"):
        check_output(output, mode)
    assert tree(output) == {}


def test_a_table_passes_unless_it_must_not_exist(output: str) -> None:
    write(output, FIRST, cut("a", "A"))
    check_output(output, "overwrite")
    check_output(output, "append")
    check_output(output, "error_if_exists", run_id="first")
    with pytest.raises(ConfigError, match="holds a table already"):
        check_output(output, "error_if_exists")


def test_a_folder_with_other_things_must_not_exist_either(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match="is not empty"):
        check_output(str(tmp_path), "error_if_exists")
    check_output(str(tmp_path), "append")


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"^output='.*file': is a file; name a folder"):
        check_output(str(tmp_path / "file"), "overwrite")


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        check_output(str(tmp_path / "file" / "below"), "overwrite")
