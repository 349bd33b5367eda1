"""Small files merged, and another number of shards, with the same rows."""

from __future__ import annotations

import hashlib
import json
import os
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crashes import copy, dies_after, tree
from staged import staged

from pipelines import read_table
from pipelines.cli import main
from transforms import commit as commit_module
from transforms import table as table_module
from transforms.commit import commit
from transforms.compact import compact
from transforms.errors import CommitError, ConfigError
from transforms.packs import shard_of
from transforms.parquet_files import STANDARD, Layout
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Location, Source
from transforms.run_report import Report
from transforms.schemas import SCHEMAS
from transforms.table import Table

Element = DocumentChunks | DeadLetter
Rows = dict[str, list[str]]

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "character", "ff", 10)
OTHER = replace(CHUNKER, hash="fedcba9876543210")
RUN = Run("first", 1_000_000, shards=4, settings={"chunker": "recursive"})
SMALL = Layout(row_group_rows=9, row_group_bytes=4_000, file_bytes=25_000)
KINDS = ("chunks", "documents", "dead_letters")


# Tables.


def cut(
    document_id: str, source: str = "corpus", chunker: ChunkerRecord = CHUNKER, chunks: int = 3
) -> DocumentChunks:
    """A document of a few chunks, with lists and structs and without."""
    made: list[Chunk] = []
    for index in range(chunks):
        text, at = f"{index}: {document_id}. ", index * 100
        name = hashlib.sha256(repr((document_id, index, chunker.hash)).encode()).hexdigest()[:32]
        spans = ((at, at + 1), (at + 2, at + len(text))) if index % 2 else ((at, at + len(text)),)
        places = (Location(1, (0.1, 2.0, 3.0, 4.0)), Location(2)) if index % 3 == 1 else ()
        made.append(
            Chunk(
                name,
                document_id,
                index,
                text,
                len(text),
                spans,
                (at, at + len(text)),
                0,
                (1, 1),
                "body",
                "recursive",
                locations=places,
                heading_path=("Ä", "") if index else (),
            )
        )
    document = Document(
        document_id,
        "x" * 1000,
        language=["en", None, "日本語"][len(document_id) % 3],
        source=Source(source, document_id),
    )
    return DocumentChunks(document, made, "ok", chunker, notes={"noted": 1})


def write(output: str, run: Run, elements: Sequence[Element], layout: Layout = STANDARD) -> Report:
    """Write `elements` and commit them."""
    return commit(staged(output, run, elements, CHUNKER, layout), run, output, [CHUNKER])


# Two documents with one id, one document by two chunkers, two sources, documents that fail in several ways.
MIXED: list[Element] = [
    *(cut("d" * number) for number in range(1, 30)),
    *(cut("d" * number, chunker=OTHER) for number in range(1, 5)),
    *(cut("e" * number, "Other source") for number in range(1, 5)),
    replace(
        cut("d", chunks=0), document=replace(cut("d").document, text="other", source=Source("corpus", "z"))
    ),
    DeadLetter("f", "read", "broken", "m1", Source("corpus", "u")),
    DeadLetter("f", "read", "broken", "m2", Source("corpus", "u")),
    DeadLetter("g", "parse", "not_text", "m", Source("corpus", "u", 7), documents=5),
]


def write_often(output: str, shards: int, runs: int = 3, **facts: Any) -> None:
    """A table of several small runs."""
    for number in range(runs):
        run = replace(RUN, run_id=f"run{number}", mode="append", shards=shards, **facts)
        write(
            output,
            run,
            [*(cut(f"r{number}-{n}") for n in range(5)), DeadLetter("x", "read", "broken", str(number))],
        )


def held(output: str, at: int | None = None) -> Rows:
    """All rows of a table, as lines."""
    files = tree(output)
    table = Table(output, at)
    rows: Rows = {kind: [] for kind in KINDS}
    for path, entry in sorted(table.files.items()):
        if entry.kind in rows:
            data = files.get(path) or files[f"control/replaced/{path}"]
            found = pq.read_table(pa.BufferReader(data), partitioning=None).to_pylist()
            rows[entry.kind] += [repr((entry.folder, sorted(row.items()))) for row in found]
    return {kind: sorted(lines) for kind, lines in rows.items()}


def data_of(output: str) -> dict[str, bytes]:
    """The data files that a plain reader of the folders finds."""
    return {path: data for path, data in tree(output).items() if path.startswith(KINDS)}


def assert_sound(output: str, shards: int) -> None:
    """Files, rows and shards are as the manifests say, and nothing else is there."""
    table, files = Table(output), tree(output)
    assert table.shards == shards
    assert data_of(output).keys() == {path for path, entry in table.files.items() if entry.kind in KINDS}
    assert not [path for path in files if path.startswith("control/staging/")]
    for path, entry in table.files.items():
        if entry.kind not in KINDS:
            continue
        assert hashlib.sha256(files[path]).hexdigest() == entry.sha256
        found = pq.ParquetFile(pa.BufferReader(files[path]))
        assert found.schema_arrow.equals(SCHEMAS[entry.kind])
        ids = found.read(["document_id"])["document_id"].to_pylist()
        assert ids == sorted(ids)
        assert {shard_of(document_id, shards) for document_id in ids} <= {entry.shard}
        assert f"-of-{shards:05d}-" in path


@pytest.fixture
def local(tmp_path: Path) -> str:
    """A local output that does not exist yet."""
    return str(tmp_path / "table")


# The same rows in other files.


@pytest.mark.parametrize(("shards", "layout"), [(1, STANDARD), (2, SMALL), (3, SMALL), (6, STANDARD)])
def test_another_number_of_shards_gives_the_bytes_of_a_run_with_that_many(
    output: str, shards: int, layout: Layout
) -> None:
    write(output, RUN, MIXED, layout)
    rows = held(output)
    report = compact(output, shards, layout)
    assert held(output) == held(output, 1) == rows
    assert_sound(output, shards)
    assert (report["outcome"], report["seq"]) == ("committed", 2)
    assert report["shards"] == {"before": 4, "after": shards}

    write(f"{output}-anew", replace(RUN, shards=shards), MIXED, layout)
    assert data_of(output) == data_of(f"{output}-anew")


def test_the_way_to_a_number_of_shards_does_not_matter(local: str) -> None:
    for name, way in {"straight": [3], "round": [6, 1, 10, 3]}.items():
        write_often(f"{local}-{name}", 4)
        for shards in way:
            compact(f"{local}-{name}", shards)
    assert data_of(f"{local}-straight") == data_of(f"{local}-round")


def test_small_files_become_one_for_each_shard_and_partition(output: str) -> None:
    write_often(output, 2)
    rows, before = held(output), Table(output).files
    report = compact(output)
    assert held(output) == held(output, 3) == rows
    assert_sound(output, 2)
    files = [entry for entry in Table(output).files.values() if entry.kind in KINDS]
    assert len({(entry.folder, entry.shard) for entry in files}) == len(files) < len(before)
    for kind in KINDS:
        assert report["before"][kind]["rows"] == report["after"][kind]["rows"] == len(rows[kind])
        assert report["after"][kind]["files"] == sum(entry.kind == kind for entry in files)


def test_the_manifest_is_one_of_the_same_kind(output: str) -> None:
    write_often(output, 2)
    report = compact(output, 1)
    old, new = Table(output).manifests[-2:]
    assert (new["mode"], new["shards"], new["parent"]) == ("compact", 1, old["seq"])
    for name in ("created_at", "partition_by", "chunkers", "settings", "schemas"):
        assert new[name] == old[name]
    for kind in KINDS:
        assert new["totals"][kind]["rows"] == old["totals"][kind]["rows"]
        assert new["totals"][kind]["tokens"] == old["totals"][kind]["tokens"]
    assert {entry["kind"] for entry in new["added"]} == set(KINDS)
    assert json.loads(tree(output)[f"control/runs/{new['run_id']}.json"]) == report


def test_what_is_compact_stays_as_it_is(output: str) -> None:
    write_often(output, 2)
    compact(output)
    before = tree(output)
    report = compact(output)
    assert (report["outcome"], report["seq"], report["replaced_files"]) == ("unchanged", 4, 0)
    assert tree(output) == before


def test_only_shards_with_several_files_are_written_anew(output: str) -> None:
    write(output, replace(RUN, shards=2), [cut(name) for name in "abcdefgh"])
    new = next(f"new{n}" for n in range(9) if shard_of(f"new{n}", 2) == 1)
    write(output, replace(RUN, run_id="second", mode="append", shards=2), [cut(new)])
    first = {path for path, entry in Table(output).files.items() if entry.shard == 0 and entry.kind in KINDS}
    compact(output)
    assert first < Table(output).files.keys()
    assert_sound(output, 2)


def test_files_and_row_groups_are_cut_by_size(local: str) -> None:
    noise = random.Random(0)
    texts = ["".join(noise.choices("abcdefghijklmnop", k=400)) for _ in range(300)]
    items = [cut(f"d{n:03d}", chunks=1) for n in range(300)]
    for item, text in zip(items, texts, strict=True):
        item.chunks = [item.chunks[0]._replace(text=text)]
    layout = Layout(row_group_rows=20, file_bytes=20_000)
    write(local, RUN, items, layout)
    rows = held(local)
    compact(local, 1, layout)
    assert held(local) == rows
    entries = sorted(
        (e for e in Table(local).files.values() if e.kind == "chunks"), key=lambda e: e.min_document_id or ""
    )
    assert len(entries) > 3
    assert all(entry.bytes >= layout.file_bytes for entry in entries[:-1])
    edges = [edge for entry in entries for edge in (entry.min_document_id, entry.max_document_id)]
    assert edges == sorted(edges)  # type: ignore[type-var]
    file = pq.ParquetFile(Path(local, entries[0].path))
    assert {file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)} == {20}
    assert compact(local, layout=layout)["outcome"] == "unchanged"


def test_further_folders_are_kept(output: str) -> None:
    write(output, replace(RUN, partition_by=("language",)), MIXED)
    rows = held(output)
    folders = {entry.folder for entry in Table(output).files.values()}
    assert any("by_language=v-" in folder for folder in folders)
    compact(output, 1)
    assert held(output) == rows
    assert {entry.folder for entry in Table(output).files.values()} == folders
    assert Table(output).partition_by == ("language",)


def test_plain_encodings_stay_plain(local: str) -> None:
    run = replace(RUN, settings={"compat": True})
    write(local, run, MIXED, Layout(profile="compat"))
    compact(local, 1)
    for path, entry in Table(local).files.items():
        if entry.kind in KINDS:
            group = pq.read_metadata(Path(local, path)).row_group(0)
            used = {code for n in range(group.num_columns) for code in group.column(n).encodings}
            assert used <= {"PLAIN", "RLE", "RLE_DICTIONARY"}


def test_a_table_without_chunks_keeps_the_file_that_readers_need(output: str) -> None:
    letters = [DeadLetter(name, "read", "broken", "m", Source("corpus")) for name in "abcd"]
    write(output, RUN, letters)
    rows = held(output)
    compact(output, 2)
    assert held(output) == rows
    assert [entry.rows for entry in Table(output).files.values() if entry.kind == "chunks"] == [0]


def test_a_table_without_anything_takes_the_number_of_shards_too(output: str) -> None:
    commit([], RUN, output, [CHUNKER])
    files = Table(output).files
    assert compact(output, 2)["outcome"] == "committed"
    assert (Table(output).shards, Table(output).files) == (2, files)
    assert compact(output, 2)["outcome"] == "unchanged"


# Runs before and after.


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Eight small documents and one that fails."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(8):
        write_document(
            folder, f"{number}.md", f"# Title {number}\n\nSome words, and others.\n" * (number + 1)
        )
    (folder / "broken.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    os.utime(folder / "broken.txt", (1_000, 1_000))
    return folder


def write_document(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    os.utime(folder / name, (1_000, 1_000))


def command(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def run(docs: Path, output: str, *flags: object) -> None:
    settings = ("--tokenizer", "character", "--chunk_size", 40, "--max_error_rate", 1)
    assert command("run", "--input", docs, "--output", output, *settings, *flags) == 0


def test_runs_verify_and_time_travel_go_on_after_a_compaction(
    docs: Path, local: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(docs, local, "--mode", "overwrite", "--shards", 4)
    more = tmp_path / "more"
    more.mkdir()
    write_document(more, "new.md", "Other words.\n")
    run(more, local, "--mode", "append", "--source_name", "more")
    before = read_table(local).to_table().sort_by("chunk_id")
    report = tmp_path / "report.json"
    assert command("compact", local, "--shards", 2, "--report", report) == 0
    assert json.loads(report.read_text())["shards"] == {"before": 4, "after": 2}
    assert read_table(local).to_table().sort_by("chunk_id") == before
    assert read_table(local, at=2).to_table().sort_by("chunk_id") == before
    assert command("verify", local, "--input", docs, "--source_name", "documents") == 0
    capsys.readouterr()
    assert command("history", local) == 0
    assert "compact:" in capsys.readouterr().out.splitlines()[2]

    run(docs, local, "--mode", "overwrite")
    assert "unchanged, commit 1" in capsys.readouterr().out
    assert Table(local).seq == 3
    write_document(docs, "0.md", "Changed words.\n")
    run(docs, local, "--mode", "overwrite")
    assert Table(local).shards == 2
    assert command("verify", local, "--input", docs, "--source_name", "documents") == 0


def test_incremental_runs_go_on_after_a_compaction(
    docs: Path, local: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (docs / "broken.txt").unlink()
    run(docs, local, "--mode", "incremental", "--shards", 3)
    compact(local, 2)
    files = Table(local).files
    assert {entry.kind for entry in files.values()} == {"chunks", "documents", "changes"}
    capsys.readouterr()
    run(docs, local, "--mode", "incremental")
    assert Table(local).files == files

    write_document(docs, "0.md", "Changed words.\n")
    run(docs, local, "--mode", "incremental")
    new = [entry for path, entry in Table(local).files.items() if path not in files]
    assert {entry.kind for entry in new} == {"chunks", "documents", "changes", "deletes"}
    assert [entry.rows for entry in new if entry.kind == "changes"] == [1]
    assert command("verify", local, "--input", docs, "--source_name", "documents") == 0


def test_vacuum_after_a_compaction_leaves_the_table_as_it_is(docs: Path, local: str) -> None:
    run(docs, local, "--shards", 3)
    assert command("compact", local, "--shards", 1) == 0
    rows = read_table(local).to_table().sort_by("chunk_id")
    assert command("vacuum", local, "--older_than", 0) == 0
    assert read_table(local).to_table().sort_by("chunk_id") == rows
    assert command("verify", local) == 0
    with pytest.raises(ConfigError, match="vacuum"):
        read_table(local, at=1)


# Crashes: after every single operation on the store.


def test_a_crash_at_any_point_leaves_the_old_table_or_the_new_one(output: str) -> None:
    for number in range(2):
        run = replace(RUN, run_id=f"run{number}", mode="append", shards=1)
        write(output, run, [cut(f"d{number}", chunks=1)])
    rows, old = held(output), set(Table(output).files)
    copy(output, f"{output}-done")
    compact(f"{output}-done", 2)
    new, files = set(Table(f"{output}-done").files), data_of(f"{output}-done")
    assert new != old

    for operations in range(1000):
        crashed = f"{output}-{operations}"
        copy(output, crashed)
        if not dies_after(operations, compact, crashed, 2):
            break
        assert set(Table(crashed).files) in (old, new)
        assert held(crashed) == rows
        compact(crashed, 2)
        assert data_of(crashed) == files
        assert Table(crashed).seq == 3
        assert_sound(crashed, 2)
    else:
        pytest.fail("the compaction never came to its end")
    assert operations > 20


# Two at a time.


def overtake(monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    """Has `work` done just before the next manifest is published."""
    publish = commit_module._publish

    def overtaken(store: Any, manifest: Any) -> None:
        monkeypatch.setattr(commit_module, "_publish", publish)
        work()
        publish(store, manifest)

    monkeypatch.setattr(commit_module, "_publish", overtaken)


def test_a_compaction_that_a_run_overtakes_is_told_and_leaves_nothing(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_often(output, 2)
    last = replace(RUN, run_id="last", mode="append", shards=2)
    overtake(monkeypatch, lambda: write(output, last, [cut("new")]))
    with pytest.raises(
        CommitError, match=r"run last made commit 4 while run compact-00000003-[0-9a-f]+ was at work"
    ):
        compact(output, 1)
    assert_sound(output, 2)
    assert compact(output, 1)["seq"] == 5
    assert len(held(output)["documents"]) == 19


def test_a_run_that_a_compaction_overtakes_is_told_if_it_has_other_shards(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_often(output, 2)
    rows = held(output)
    overtake(monkeypatch, lambda: compact(output, 1))
    append = replace(RUN, run_id="late", mode="append", shards=2)
    with pytest.raises(
        CommitError, match=r"compact-00000003-[0-9a-f]+ made commit 4 while run late was at work"
    ):
        write(output, append, [cut("new")])
    with pytest.raises(CommitError, match="run late has 2 shards, but the table has 1"):
        write(output, append, [cut("new")])
    assert held(output) == rows
    assert_sound(output, 1)


@pytest.mark.parametrize("others", [None, 3, 1])
def test_of_two_compactions_one_wins_and_the_other_is_told(
    output: str, others: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_often(output, 2)
    rows = held(output)
    overtake(monkeypatch, lambda: compact(output, others))
    with pytest.raises(CommitError, match=r"made commit 4 while run compact-00000003-[0-9a-f]+ was at work"):
        compact(output, 1)
    assert held(output) == rows
    assert_sound(output, others or 2)


def test_of_many_compactions_at_once_one_wins(local: str) -> None:
    write_often(local, 4)
    rows = held(local)
    outcomes: list[str] = []

    def race(shards: int | None) -> None:
        try:
            outcomes.append(compact(local, shards)["outcome"])
        except CommitError:
            outcomes.append("told")

    threads = [threading.Thread(target=race, args=(shards,)) for shards in (None, 1, 2, 2, 3, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One that begins when another has ended finds another table, and may win too.
    assert len(outcomes) == len(threads)
    assert "committed" in outcomes
    assert held(local) == rows
    assert_sound(local, Table(local).shards or 0)


def test_a_compaction_that_fails_leaves_the_files_that_another_is_about_to_commit(
    local: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_often(local, 2)
    rows = held(local)
    create = table_module.Store.create

    def broken(self: Any, path: str, data: bytes) -> None:
        monkeypatch.setattr(table_module.Store, "create", create)
        raise OSError("the disk is full")

    def fails() -> None:
        monkeypatch.setattr(table_module.Store, "create", broken)
        with pytest.raises(OSError, match="disk is full"):
            compact(local, 1)

    overtake(monkeypatch, fails)
    assert compact(local, 1)["outcome"] == "committed"
    assert held(local) == rows
    assert_sound(local, 1)


# What is refused.


def test_what_is_no_table_and_what_is_no_number_of_shards_is_refused(
    docs: Path, local: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("compact", docs) == 2
    assert "holds no table" in capsys.readouterr().err
    write(local, RUN, MIXED)
    assert command("compact", local, "--shards", 0) == 2
    assert "shards=0: a table has 1 to 100,000 shards" in capsys.readouterr().err
    assert command("compact", local, "--report", docs) == 2
    assert Table(local).seq == 1


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "rows"])
def test_a_damaged_table_stays_as_it_is(local: str, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(local, RUN, MIXED)
    path = next(path for path in sorted(Table(local).files) if path.startswith("chunks/"))
    file = Path(local, path)
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "rows":
        pq.write_table(pq.read_table(file, partitioning=None)[1:], file)
    else:
        file.write_bytes(data[:-100] if damage == "cut" else data[:60] + bytes([data[60] ^ 1]) + data[61:])
    before = tree(local)
    assert command("compact", local, "--shards", 1) == 1
    assert path in capsys.readouterr().err
    assert tree(local) == before
