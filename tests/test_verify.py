"""Proof of a committed table: a sound one passes, and each kind of damage is found where it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from staged import staged

from transforms import sources
from transforms.chunkers import Chunker, get_chunker
from transforms.commit import Table, commit
from transforms.errors import ConfigError, DocumentError
from transforms.fingerprint import chunk_id, text_digest
from transforms.parquet_files import STANDARD, Layout
from transforms.parsers import ParseSettings, parse
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks
from transforms.schemas import SCHEMAS
from transforms.sources import ReadSettings, SourceFile, match
from transforms.verify import CHECKS, Fault, VerifyReport, verify

Row = dict[str, Any]
Change = Callable[[list[Row]], object]

RUN = Run("first", 1_000_000, shards=2)
KEEPING = replace(RUN, keep_text=True)
CHUNKER = get_chunker("heading_aware", chunk_size=40, chunk_overlap=12, tokenizer="character")
OTHER = get_chunker("recursive", chunk_size=25, tokenizer="cl100k_base", engine="tiktoken")

TEXTS = {
    "short.txt": "\n\nOne short text.\n\n\n",
    "blank.txt": " \n\t\n",
    "plain.txt": "First words of it. Second words of it. Third words of it.\nA line, and then another one.\n",
    "tree.md": "# Top\n\nSome words under it, and more of them.\n\n## Below\n\nWords. Words. Words. Words.\n",
    "scripts.md": "# Größe 🙂\n\nΚαλημέρα κόσμε, 你好世界。再见。 Ünïcödé e\u0301 words, many words.\n\n" * 3,
    "same.txt": "The same line.\n\n" * 12,
}


# Tables.


def cut(
    inputs: Sequence[SourceFile], chunker: Chunker, read: ReadSettings | None = None
) -> Iterator[DocumentChunks | DeadLetter]:
    """What the job makes of the inputs."""
    read = read or ReadSettings()
    for file in inputs:
        for task in sources.plan(file, read):
            for item in [task] if isinstance(task, DeadLetter) else sources.read(task, read):
                if isinstance(item, DeadLetter):
                    yield item
                    continue
                try:
                    yield chunker.chunk_document(parse(item, ParseSettings()))
                except DocumentError as error:
                    yield DeadLetter(item.document_id, error.stage, error.reason, "m", item.source)


def write(
    output: str,
    elements: Iterator[DocumentChunks | DeadLetter] | Sequence[DocumentChunks | DeadLetter],
    run: Run = RUN,
    layout: Layout = STANDARD,
    chunker: ChunkerRecord = CHUNKER.record,
) -> None:
    """Write `elements` and commit them."""
    commit(staged(output, run, elements, chunker, layout), run, output, [chunker])


def make_corpus(folder: Path) -> list[SourceFile]:
    """A table of documents with a taken id and one without id, a text file, and a file that is no text."""
    folder.mkdir()
    rows = [
        {"document_id": name, "text": text, "media_type": media_type(name)} for name, text in TEXTS.items()
    ]
    rows += [rows[0] | {"text": "An id that is taken."}, rows[0] | {"document_id": None}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    (folder / "note.txt").write_text("A note. One more line.\r\nAnd a third one: the last.")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return match([str(folder)])


def media_type(name: str) -> str:
    return "text/markdown" if name.endswith(".md") else "text/plain"


def note(tmp_path: Path) -> str:
    """Id of the text file."""
    return sources.address_id(str(tmp_path / "corpus" / "note.txt"))


@pytest.fixture
def corpus(tmp_path: Path) -> list[SourceFile]:
    return make_corpus(tmp_path / "corpus")


@pytest.fixture
def output(tmp_path: Path) -> str:
    """An output that does not exist yet."""
    return str(tmp_path / "table")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of a corpus, whose ledger keeps the texts."""
    folder = tmp_path_factory.mktemp("sound")
    write(str(folder / "table"), cut(make_corpus(folder / "corpus"), CHUNKER), KEEPING)
    return folder / "table"


@pytest.fixture
def table(output: str, sound: Path) -> str:
    """A copy of the sound table, to be damaged."""
    shutil.copytree(sound, output)
    return output


# Damage.


def manifest_of(output: str) -> tuple[Path, Row]:
    """The last manifest and its path."""
    path = sorted(Path(output, "control", "commits").iterdir())[-1]
    return path, json.loads(path.read_bytes())


def find(output: str, kind: str, wanted: Callable[[Row], bool]) -> tuple[str, int]:
    """File and row of the first row that is `wanted`."""
    for path in sorted(Table(output).files):
        if path.startswith(f"{kind}/"):
            for number, row in enumerate(pq.read_table(Path(output, path), partitioning=None).to_pylist()):
                if wanted(row):
                    return path, number
    raise AssertionError("there is no such row")


def rewrite(output: str, path: str, change: Change, schema: pa.Schema | None = None) -> str:
    """Change the rows of a file, and the manifest with it; gives the file's new path.

    What `change` gives, if anything, takes the place of the rows.
    """
    old = pq.read_table(Path(output, path), partitioning=None)
    rows = old.to_pylist()
    given = change(rows)
    held = (schema or SCHEMAS[path.split("/")[0]]).with_metadata(old.schema.metadata)
    data = as_parquet(pa.Table.from_pylist(given if isinstance(given, list) else rows, schema=held))
    digest = hashlib.sha256(data).hexdigest()
    new = f"{path[: -len('0123456789abcdef.parquet')]}{digest[:16]}.parquet"
    Path(output, path).unlink()
    Path(output, new).write_bytes(data)
    rows_now = pq.ParquetFile(pa.BufferReader(data)).metadata.num_rows
    register(output, path, path=new, sha256=digest, bytes=len(data), rows=rows_now)
    return new


def as_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def register(output: str, entry_of: str, **facts: object) -> None:
    """Change what the manifest says of a file."""
    where, manifest = manifest_of(output)
    next(entry for entry in manifest["added"] if entry["path"] == entry_of).update(facts)
    where.write_text(json.dumps(manifest))


def chunk_of(name: str, index: int = 0) -> Callable[[Row], bool]:
    """Whether a row is that chunk of the document of that name."""
    return lambda row: (row["document_id"], row["chunk_index"]) == (name, index)


def document(name: str) -> Callable[[Row], bool]:
    """Whether a row is of the document of that name."""
    return lambda row: row["document_id"] == name


def setting(**values: object) -> Callable[[list[Row], int], object]:
    """A change of one row to some values; functions are given the value before."""

    def change(rows: list[Row], at: int) -> None:
        for column, value in values.items():
            rows[at][column] = value(rows[at][column]) if callable(value) else value

    return change


def with_text(of: Callable[[str], str]) -> Callable[[list[Row], int], object]:
    """A change of one chunk's text, with the id that follows from it."""

    def change(rows: list[Row], at: int) -> None:
        text = of(rows[at]["text"])
        rows[at]["text"] = text
        rows[at]["chunk_id"] = chunk_id(
            rows[at]["document_id"], CHUNKER.record.hash, text_digest(text.encode()), 0
        )

    return change


def plus(number: int) -> Callable[[int], int]:
    return lambda value: value + number


def drop(rows: list[Row], at: int) -> object:
    return rows[:at] + rows[at + 1 :]


def swap(rows: list[Row], at: int) -> None:
    rows[at], rows[at + 1] = rows[at + 1], rows[at]


def same_id(rows: list[Row], at: int) -> None:
    rows[at]["chunk_id"] = rows[at - 1]["chunk_id"]


def twice(rows: list[Row], at: int) -> object:
    return [*rows[: at + 1], *rows[at:]]


def later_parent(rows: list[Row], at: int) -> None:
    rows[at]["parent_id"] = rows[at + 1]["chunk_id"]


Edit = Callable[[list[Row], int], object]

# Kind of file, the row that is damaged, how, and the checks that find it: first the one that names that row.
ROW_DAMAGES: dict[str, tuple[str, Callable[[Row], bool], Edit, list[str]]] = {
    "a dropped chunk": (
        "chunks",
        chunk_of("same.txt", 1),
        drop,
        ["chunk_index", "chunk_count", "ledger", "chunk_id", "overlap", "coverage"],
    ),
    "a dropped last chunk": (
        "chunks",
        chunk_of("plain.txt", 1),
        drop,
        ["chunk_index", "chunk_count", "ledger", "overlap", "coverage", "changes"],
    ),
    "a chunk twice": (
        "chunks",
        chunk_of("short.txt"),
        twice,
        ["order", "unique", "chunk_index", "chunk_count", "ledger", "span", "overlap"],
    ),
    "another id": ("chunks", chunk_of("short.txt"), setting(chunk_id="0" * 32), ["chunk_id"]),
    "the id of another": ("chunks", chunk_of("plain.txt", 1), same_id, ["unique"]),
    "another text": ("chunks", chunk_of("short.txt"), setting(text="Ome short text."), ["chunk_id", "slice"]),
    "another text with its id": (
        "chunks",
        chunk_of("short.txt"),
        with_text(lambda text: text.replace("One", "Two")),
        ["slice", "changes"],
    ),
    "a blank text": (
        "chunks",
        chunk_of("short.txt"),
        with_text(lambda text: " " * len(text)),
        ["blank", "slice", "changes"],
    ),
    "another token count": (
        "chunks",
        chunk_of("short.txt"),
        setting(token_count=plus(1)),
        ["token_count", "ledger"],
    ),
    "another index": ("chunks", chunk_of("short.txt"), setting(chunk_index=1), ["chunk_index"]),
    "another count": ("chunks", chunk_of("short.txt"), setting(chunk_count=2), ["chunk_count"]),
    "rows in another order": ("chunks", chunk_of("plain.txt"), swap, ["order"]),
    "a null": ("chunks", chunk_of("short.txt"), setting(token_count=None), ["null"]),
    "another source": ("chunks", chunk_of("short.txt"), setting(source_name="other"), ["partition"]),
    "another chunker": ("chunks", chunk_of("short.txt"), setting(chunker_hash="0" * 16), ["chunker_hash"]),
    "another chunker in the ledger": (
        "documents",
        document("short.txt"),
        setting(chunker_hash="0" * 16),
        ["chunker_hash"],
    ),
    "a parent that comes later": ("chunks", chunk_of("tree.md", 1), later_parent, ["parent"]),
    "a mark of the budget": ("chunks", chunk_of("short.txt"), setting(over_budget=True), ["ledger"]),
    "a shifted start": (
        "chunks",
        chunk_of("short.txt"),
        setting(start_char=plus(1)),
        ["span", "slice", "byte_span", "coverage"],
    ),
    "a shifted span": (
        "chunks",
        chunk_of("short.txt"),
        setting(start_char=plus(1), end_char=plus(1), start_byte=plus(1), end_byte=plus(1)),
        ["slice", "coverage"],
    ),
    "a span beyond the end": (
        "chunks",
        chunk_of("short.txt"),
        setting(start_char=plus(9), end_char=plus(9), start_byte=plus(9), end_byte=plus(9)),
        ["span", "slice", "lines", "byte_span", "coverage"],
    ),
    "a span before the start": (
        "chunks",
        chunk_of("short.txt"),
        setting(start_char=plus(-3), end_char=plus(-3), start_byte=plus(-3), end_byte=plus(-3)),
        ["span", "slice", "lines", "coverage"],
    ),
    "a span that is none": (
        "chunks",
        chunk_of("short.txt"),
        setting(end_char=2),
        ["span", "slice", "lines", "byte_span", "coverage"],
    ),
    "bytes that are none": ("chunks", chunk_of("short.txt"), setting(end_byte=2), ["span", "byte_span"]),
    "spans that are not the hull": (
        "chunks",
        chunk_of("short.txt"),
        setting(spans=[{"start": 2, "end": 5}, {"start": 5, "end": 16}]),
        ["span", "slice", "coverage"],
    ),
    "shifted bytes": (
        "chunks",
        chunk_of("short.txt"),
        setting(start_byte=plus(1), end_byte=plus(1)),
        ["byte_span"],
    ),
    "another overlap": ("chunks", chunk_of("plain.txt", 1), setting(overlap_chars=plus(1)), ["overlap"]),
    "an overlap with nothing": ("chunks", chunk_of("short.txt"), setting(overlap_chars=1), ["overlap"]),
    "another last line": ("chunks", chunk_of("short.txt"), setting(line_end=plus(1)), ["lines"]),
    "lines in another order": ("chunks", chunk_of("short.txt"), setting(line_start=plus(1)), ["lines"]),
    "a row of the ledger dropped": ("documents", document("short.txt"), drop, ["ledger"]),
    "a row of the ledger twice": ("documents", document("short.txt"), twice, ["ledger"]),
    "another status": ("documents", document("short.txt"), setting(status="skipped"), ["ledger"]),
    "another chunk count in the ledger": (
        "documents",
        document("tree.md"),
        setting(chunk_count=plus(1)),
        ["ledger"],
    ),
    "another size": ("documents", document("short.txt"), setting(char_count=plus(1)), ["ledger"]),
    "another digest": ("documents", document("short.txt"), setting(text_sha256="0" * 64), ["text_sha256"]),
    "another text in the ledger": ("documents", document("short.txt"), setting(text="?"), ["text_sha256"]),
    "lost characters": ("documents", document("short.txt"), setting(lost_chars=2), ["coverage"]),
    "no failure in the ledger": ("documents", lambda row: row["status"] == "failed", drop, ["dead_letter"]),
    "no dead letter": ("dead_letters", lambda row: row["reason"] == "no_parser", drop, ["dead_letter"]),
    "another reason": ("dead_letters", lambda row: True, setting(reason="?"), ["dead_letter"]),
}


@pytest.mark.parametrize("damage", ROW_DAMAGES)
def test_a_damaged_row_is_found_where_it_is(damage: str, table: str) -> None:
    kind, wanted, edit, checks = ROW_DAMAGES[damage]
    path, at = find(table, kind, wanted)
    damaged: list[Row] = []

    def change(rows: list[Row]) -> object:
        damaged.append(dict(rows[at]))
        return edit(rows, at)

    new = rewrite(table, path, change)
    report = verify(table)
    assert not report.ok
    assert set(report.fault_counts) == set(checks), report.summary()
    told = [fault for fault in report.faults if fault.check == checks[0]]
    assert {fault.document_id for fault in told} == {damaged[0]["document_id"]}
    for fault in told:
        assert fault.row is not None
        rows = pq.read_table(Path(table, fault.file), partitioning=None).to_pylist()
        assert rows[fault.row]["document_id"] == fault.document_id
    if told[0].file == new and edit not in (drop, twice, swap):
        assert (new, at) in {(fault.file, fault.row) for fault in told}


def test_rows_out_of_order_are_found_and_what_follows_is_not_blamed(table: str) -> None:
    path, _ = find(table, "chunks", chunk_of("same.txt"))
    new = rewrite(table, path, lambda rows: sorted(rows, key=document("same.txt")))
    _, at = find(table, "chunks", chunk_of("same.txt"))
    report = verify(table)
    assert [(f.file, f.row, f.document_id) for f in report.faults if f.check == "order"] == [
        (new, at, "same.txt")
    ]
    assert report.fault_counts == {"order": 1, "ledger": 1, "coverage": 1}


def test_a_lost_chunk_is_found_by_the_text_though_all_counts_fit(table: str) -> None:
    path, at = find(table, "chunks", chunk_of("short.txt"))
    rewrite(table, path, lambda rows: drop(rows, at))
    path, at = find(table, "documents", document("short.txt"))
    blank = setting(status="blank", chunk_count=0, token_count=0)
    new = rewrite(table, path, lambda rows: blank(rows, at))
    fault, balance = verify(table).faults
    assert (balance.check, balance.message[:52]) == (
        "changes",
        "a reader that follows the commits has +1 chunks, or ",
    )
    assert (fault.check, fault.file, fault.row) == ("coverage", new, at)
    assert "13 characters are in no chunk, the ledger says 0: 'One short text.'" in fault.message


def test_the_ledger_itself_tells_of_lost_characters(output: str) -> None:
    write(output, [replace(CHUNKER.chunk_document(Document("a", "Some words.")), lost=2)])
    (fault,) = verify(output).faults
    assert (fault.check, fault.row, fault.document_id) == ("coverage", 0, "a")
    assert fault.message == "says that 2 characters are in no chunk"


def test_a_skipped_document_has_no_chunks_and_loses_nothing(output: str) -> None:
    skipped = DocumentChunks(Document("a", "Some words."), (), "skipped", CHUNKER.record, reason="lock file")
    write(output, [skipped], KEEPING)
    report = verify(output)
    assert (report.ok, report.documents_recut) == (True, 1)


def test_as_many_failures_as_dead_letters(output: str) -> None:
    write(output, [DeadLetter("a", "read", "corrupt", f"row group {number}") for number in range(3)])
    assert verify(output).ok
    path, _ = find(output, "dead_letters", document("a"))
    rewrite(output, path, lambda rows: rows[1:])
    assert verify(output).fault_counts == {"dead_letter": 1}


def test_a_chunk_over_the_budget_is_found(output: str, corpus: list[SourceFile]) -> None:
    record = replace(CHUNKER.record, chunk_size=30)
    elements = [
        replace(item, chunker=record) if isinstance(item, DocumentChunks) else item
        for item in cut(corpus, CHUNKER)
    ]
    write(output, elements, chunker=record)
    report = verify(output)
    assert set(report.fault_counts) == {"budget"}
    fault = report.faults[0]
    row = pq.read_table(Path(output, fault.file), partitioning=None).to_pylist()[fault.row or 0]
    assert (row["document_id"], row["token_count"] > 30) == (fault.document_id, True)


def test_a_chunk_over_the_budget_may_be_marked(output: str) -> None:
    recursive = get_chunker("recursive", chunk_size=1, tokenizer="character")
    write(output, [recursive.chunk_document(Document("a", "e\u0301"))], chunker=recursive.record)
    report = verify(output)
    assert (report.ok, report.checked["chunks"]) == (True, 1)


# Files.


def first(output: str, kind: str = "chunks") -> str:
    """The first data file of a kind."""
    return min(path for path in Table(output).files if path.startswith(f"{kind}/"))


def is_gone(output: str) -> str:
    path = first(output)
    Path(output, path).unlink()
    return path


def is_longer(output: str) -> str:
    path = first(output)
    with Path(output, path).open("ab") as file:
        file.write(b"x")
    return path


def is_cut_off(output: str) -> str:
    path = first(output, "documents")
    data = Path(output, path).read_bytes()
    Path(output, path).write_bytes(data[: len(data) // 2])
    return path


def has_a_flipped_bit(output: str) -> str:
    path = first(output)
    data = bytearray(Path(output, path).read_bytes())
    group = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(0)
    text = group.column(SCHEMAS["chunks"].get_field_index("text"))
    data[text.data_page_offset + text.total_compressed_size - 1] ^= 1
    Path(output, path).write_bytes(data)
    return path


def has_another_author(output: str) -> str:
    path = first(output)
    data = Path(output, path).read_bytes()
    Path(output, path).write_bytes(data.replace(b"parquet-cpp-arrow", b"parquet-cpp-arrov"))
    return path


def has_other_rows_than_told(output: str) -> str:
    path = first(output, "documents")
    register(output, path, rows=1000)
    return path


def has_another_schema(output: str) -> str:
    schema = SCHEMAS["chunks"]
    at = schema.get_field_index("text")
    large = schema.set(at, pa.field("text", pa.large_string(), nullable=False))
    return rewrite(output, first(output), lambda rows: None, large)


def is_foreign(output: str) -> str:
    path = f"{first(output).rpartition('/')[0]}/part-00000-of-00002-{'0' * 16}.parquet"
    Path(output, path).write_bytes(Path(output, first(output)).read_bytes())
    return path


def is_foreign_in_the_ledger(output: str) -> str:
    Path(output, "documents/note.txt").write_text("?")
    return "documents/note.txt"


def is_staged(output: str) -> str:
    path = "control/staging/run/chunks.parquet"
    Path(output, path).parent.mkdir(parents=True)
    Path(output, path).write_text("?")
    return path


def has_no_chunker(output: str) -> str:
    next(Path(output, "chunkers").iterdir()).unlink()
    return first(output)


def chunkers_file(output: str, **values: object) -> str:
    """The chunker of the table with other settings; gives its path."""
    path = next(Path(output, "chunkers").iterdir())
    table = pq.read_table(path)
    pq.write_table(pa.Table.from_pylist([table.to_pylist()[0] | values], schema=table.schema), path)
    return f"chunkers/{path.name}"


def has_another_chunker(output: str) -> str:
    chunkers_file(output, chunk_size=4000)
    return first(output)


def is_half_a_chunker(output: str) -> str:
    return chunkers_file(output, chunk_size=None)


def is_no_chunker(output: str) -> str:
    Path(output, "chunkers/note.txt").write_text("?")
    return "chunkers/note.txt"


def does_not_point_to_the_last_commit(output: str) -> str:
    Path(output, "control/LATEST").write_text('{"seq": 7}')
    return "control/LATEST"


def is_not_there(output: str) -> str:
    Path(output, "control/LATEST").unlink()
    return "control/LATEST"


FILE_DAMAGES: list[tuple[Callable[[str], str], list[str]]] = [
    (is_gone, ["missing"]),
    (is_longer, ["bytes", "unreadable"]),
    (is_cut_off, ["bytes", "unreadable"]),
    (has_a_flipped_bit, ["sha256", "unreadable"]),
    (has_another_author, ["sha256"]),
    (has_other_rows_than_told, ["rows"]),
    (has_another_schema, ["schema"]),
    (is_foreign, ["foreign"]),
    (is_foreign_in_the_ledger, ["foreign"]),
    (is_staged, ["staging"]),
    (has_no_chunker, ["chunkers"]),
    (has_another_chunker, ["chunkers"]),
    (is_half_a_chunker, ["chunkers"]),
    (is_no_chunker, ["unreadable"]),
    (does_not_point_to_the_last_commit, ["manifest"]),
    (is_not_there, ["manifest"]),
]


@pytest.mark.parametrize(("damage", "checks"), FILE_DAMAGES)
def test_a_damaged_file_is_named(damage: Callable[[str], str], checks: list[str], table: str) -> None:
    path = damage(table)
    report = verify(table)
    assert set(report.fault_counts) == set(checks), report.summary()
    for check in checks:
        assert (path, None, None) in {
            (f.file, f.row, f.document_id) for f in report.faults if f.check == check
        }


def test_rows_of_a_file_that_is_not_the_committed_one_are_looked_at(table: str) -> None:
    path, at = find(table, "chunks", chunk_of("short.txt"))
    old = pq.read_table(Path(table, path), partitioning=None)
    rows = old.to_pylist()
    rows[at]["token_count"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=old.schema), Path(table, path))
    report = verify(table)
    assert set(report.fault_counts) == {"bytes", "token_count", "ledger"}
    assert ("token_count", path, at, "short.txt") in {
        (f.check, f.file, f.row, f.document_id) for f in report.faults
    }


def test_a_file_in_the_wrong_shard_is_found(table: str) -> None:
    path = next(path for path in Table(table).files if path.startswith("chunks/") and "part-00000" in path)
    new = path.replace("part-00000", "part-00001")
    Path(table, path).rename(Path(table, new))
    register(table, path, path=new)
    report = verify(table)
    found = {(f.file, f.row, f.document_id) for f in report.faults if f.check == "shard"}
    assert {file for file, _, _ in found} == {new}
    rows = pq.read_table(Path(table, new), partitioning=None)
    assert {name for _, _, name in found} == set(rows["document_id"].to_pylist())


@pytest.mark.parametrize(
    "content", ["{}", "?", '{"seq": 3}', '{"seq": 1, "added": [{"path": 1}], "removed": []}']
)
def test_manifests_that_cannot_be_followed_are_told(content: str, table: str) -> None:
    manifest_of(table)[0].write_text(content)
    report = verify(table)
    assert report.fault_counts == {"manifest": 1}
    assert report.checked["files"] == 0


def test_a_folder_without_a_table_proves_nothing(output: str) -> None:
    report = verify(output)
    assert (report.ok, report.seq, report.fault_counts) == (False, 0, {"manifest": 1})
    assert str(report.faults[0]) == "manifest: control/commits: there is no commit, and so no table"
    with pytest.raises(ConfigError, match="unknown scheme"):
        verify("ftp://host/table")


def test_a_store_that_does_not_answer_is_no_fault(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    local = type(fsspec.filesystem("file"))
    opened = local._open

    def refuse(store: Any, path: str, *args: Any, **options: Any) -> Any:
        if path.endswith(".parquet"):
            raise ConnectionResetError("reset")
        return opened(store, path, *args, **options)

    monkeypatch.setattr(local, "_open", refuse)
    with pytest.raises(ConnectionResetError):
        verify(table)


# Sound tables.


@pytest.mark.parametrize("chunker", [CHUNKER, OTHER])
@pytest.mark.parametrize("run", [RUN, KEEPING])
def test_a_sound_table_passes(chunker: Chunker, run: Run, output: str, corpus: list[SourceFile]) -> None:
    write(output, cut(corpus, chunker), run, chunker=chunker.record)
    report = verify(output)
    assert report.ok, report.summary()
    entries = Table(output).files.values()
    assert report.checked == {
        "files": len(entries),
        "bytes": sum(entry.bytes for entry in entries),
        "rows": sum(entry.rows for entry in entries),
        **{kind: sum(e.rows for e in entries if e.kind == kind) for kind in SCHEMAS},
    }
    assert report.seq == 1
    assert report.documents_compared == report.documents_recut == (7 if run.keep_text else 0)

    report = verify(output, corpus)
    assert report.ok, report.summary()
    assert (report.documents_compared, report.documents_recut, report.documents_changed) == (7, 7, 0)


def test_a_document_may_go_over_many_row_groups_and_files(output: str, corpus: list[SourceFile]) -> None:
    layout = Layout(row_group_rows=2, file_bytes=1)
    write(output, cut(corpus, CHUNKER), layout=layout)
    assert verify(output, corpus).ok
    assert verify(output).checked["files"] > 20

    path, at = find(output, "chunks", chunk_of("same.txt", 3))
    rewrite(output, path, lambda rows: setting(overlap_chars=plus(1))(rows, at))
    assert [fault.check for fault in verify(output).faults] == ["overlap"]


def test_chunkers_and_sources_share_a_table(output: str, corpus: list[SourceFile], tmp_path: Path) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "a.txt").write_text("News of today.")
    news, read = match([str(tmp_path / "news")]), ReadSettings(source_name="news")
    write(output, [*cut(corpus, CHUNKER), *cut(news, CHUNKER, read)])
    more = Run("second", 2_000_000, mode="append", shards=2)
    write(output, [*cut(corpus, OTHER), *cut(news, OTHER, read)], more, chunker=OTHER.record)
    report = verify(output, corpus)
    assert report.ok, report.summary()
    assert report.documents_compared == 14
    report = verify(output, news, read)
    assert (report.ok, report.documents_compared, report.seq) == (True, 2, 2)


def test_a_document_that_a_second_run_cut_again_is_told(output: str, corpus: list[SourceFile]) -> None:
    write(output, cut(corpus, CHUNKER))
    again = next(item for item in cut(corpus, CHUNKER) if isinstance(item, DocumentChunks) and item.chunks)
    write(output, [again], Run("second", 2_000_000, mode="append", shards=2))
    report = verify(output)
    assert {fault.document_id for fault in report.faults} == {again.document.document_id}
    assert {"unique", "ledger"} <= set(report.fault_counts)


def test_an_empty_table_passes(output: str) -> None:
    commit([], RUN, output)
    assert verify(output).ok
    commit([], replace(RUN, run_id="second"), output, [CHUNKER.record])
    assert verify(output).ok


def test_a_table_in_an_object_store_passes() -> None:
    root = f"memory://{uuid4().hex}"
    memory = fsspec.filesystem("memory")
    memory.pipe_file(f"{root}-in/a.txt", b"Some words. Some more words, and words.")
    try:
        inputs = match([f"{root}-in"])
        write(root, cut(inputs, CHUNKER))
        report = verify(root, inputs)
        assert (report.ok, report.documents_recut) == (True, 1)
        memory.pipe_file(f"{root}/chunks/x", b"?")
        assert [(fault.check, fault.file) for fault in verify(root).faults] == [("foreign", "chunks/x")]
    finally:
        memory.rm(root, recursive=True)
        memory.rm(f"{root}-in", recursive=True)


def made(text: str, *chunks: Chunk) -> DocumentChunks:
    """A document with chunks made by hand."""
    return DocumentChunks(Document("a", text), chunks, "ok", CHUNKER.record)


def chunk(index: int, text: str, *spans: tuple[int, int], **more: Any) -> Chunk:
    name = chunk_id("a", CHUNKER.record.hash, text_digest(text.encode()), 0)
    hull = (spans[0][0], spans[-1][1])
    return Chunk(name, "a", index, text, len(text), spans, hull, 0, (1, 1), "body", "made", **more)


def test_chunks_of_many_spans_and_derived_ones_pass_and_are_checked(output: str) -> None:
    text = "one, two, three, four"
    pieces = chunk(0, "onetwo", (0, 3), (5, 8)), chunk(1, ",,", (3, 4), (8, 9))
    derived = chunk(2, "Row 0: three", (10, 16), is_derived=True), chunk(3, "four", (17, 21))
    write(output, [made(text, *pieces, *derived)], replace(KEEPING, shards=1))
    assert verify(output).ok

    path, _ = find(output, "chunks", chunk_of("a"))
    path = rewrite(output, path, lambda rows: setting(overlap_chars=1)(rows, 1))
    assert [(fault.check, fault.row) for fault in verify(output).faults] == [("overlap", 1)]
    path = rewrite(output, path, lambda rows: setting(overlap_chars=0)(rows, 1))
    rewrite(output, path, lambda rows: setting(spans=lambda spans: spans[::-1])(rows, 0))
    assert {(fault.check, fault.row) for fault in verify(output).faults} == {("span", 0), ("slice", 0)}


@pytest.mark.parametrize(
    ("row", "edit", "check", "message"),
    [
        (0, setting(line_start=0), "lines", "lines 0 to 1 follow lines 1 to 1"),
        (2, setting(line_start=2), "lines", "lines 2 to 1 follow lines 1 to 1"),
        (0, setting(spans=lambda spans: spans[::-1]), "span", "empty or out of order"),
        (0, setting(spans=lambda spans: [*spans, spans[-1]]), "span", "empty or out of order"),
        (0, setting(spans=lambda spans: [{"start": 2, "end": 2}, *spans]), "span", "empty or out of order"),
        (0, setting(spans=[]), "span", "do not reach from 0 to 8"),
        (0, setting(spans=lambda spans: spans[:1]), "span", "do not reach from 0 to 8"),
        (2, setting(start_char=3), "span", "(3, 16, 10, 16) does not come after (3, 9, 3, 9)"),
        (3, setting(end_char=22, end_byte=22), "span", "the document has 21 characters, 21 bytes"),
        (3, setting(end_char=20, end_byte=20), "span", "has (3, 3) characters and bytes, the text (4, 4)"),
    ],
)
def test_without_the_text_chunks_are_checked_by_themselves(
    row: int, edit: Edit, check: str, message: str, output: str
) -> None:
    pieces = chunk(0, "onetwo", (0, 3), (5, 8)), chunk(1, ",,", (3, 4), (8, 9))
    derived = chunk(2, "Row 0: three", (10, 16), is_derived=True), chunk(3, "four", (17, 21))
    write(output, [made("one, two, three, four", *pieces, *derived)])
    path, _ = find(output, "chunks", chunk_of("a"))
    new = rewrite(output, path, lambda rows: edit(rows, row))
    told = {(f.file, f.row, f.check, f.message) for f in verify(output).faults}
    assert [found[:3] for found in told if message in found[3]] == [(new, row, check)], told


class Words:
    """A tokenizer that no name can tell."""

    name = "hf:words.json"
    vocabulary_digest = "ab"

    def count(self, text: str) -> int:
        return len(text.split())

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def boundaries(self, text: str) -> Sequence[int]:
        return range(1, len(text) + 1)


@pytest.mark.parametrize("name", ["hf:words.json", "unknown", "character"])
def test_chunks_whose_tokenizer_is_not_at_hand_are_not_recounted(name: str, output: str) -> None:
    record = replace(CHUNKER.record, tokenizer=name, vocabulary_digest="ab")
    (whole,) = get_chunker("recursive", chunk_size=40, tokenizer="character").chunk(
        Document("a", "Two words.")
    )
    held = whole._replace(chunk_id=chunk_id("a", record.hash, text_digest(b"Two words."), 0))
    write(output, [replace(made("Two words.", held), chunker=record)], chunker=record)
    report = verify(output)
    assert (report.ok, report.not_recounted) == (True, {name: 1})
    assert f"1 not recounted: the tokenizer {name} is not at hand" in report.summary()
    if name == Words.name:
        report = verify(output, tokenizers=[Words()])
        assert (report.fault_counts, report.not_recounted) == ({"token_count": 1}, {})


# Inputs.


def change_row(folder: Path, name: str, text: str) -> None:
    """Give a document of the table of documents another text."""
    path = folder / "rows.parquet"
    rows = pq.read_table(path).to_pylist()
    next(row for row in rows if row["document_id"] == name)["text"] = text
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_a_document_that_changed_breaks_no_law(output: str, corpus: list[SourceFile], tmp_path: Path) -> None:
    write(output, cut(corpus, CHUNKER), KEEPING)
    change_row(tmp_path / "corpus", "short.txt", "Another text.")
    files = match([str(tmp_path / "corpus")])
    (tmp_path / "corpus" / "note.txt").unlink()
    report = verify(output, files)
    assert report.ok, report.summary()
    assert sorted(report.changed) == sorted(["short.txt", note(tmp_path)])
    assert (report.documents_compared, report.documents_recut, report.documents_changed) == (7, 7, 2)
    assert "changed    2: " in report.summary()


def test_without_the_ledgers_text_a_changed_document_is_not_cut_again(
    output: str, corpus: list[SourceFile], tmp_path: Path
) -> None:
    write(output, cut(corpus, CHUNKER))
    (tmp_path / "corpus" / "note.txt").write_text("Another text.")
    report = verify(output, match([str(tmp_path / "corpus")]))
    assert report.ok
    assert (report.documents_compared, report.documents_recut, list(report.changed)) == (
        7,
        6,
        [note(tmp_path)],
    )


@pytest.mark.parametrize(
    "edit", [setting(chunk_id="0" * 32), with_text(lambda text: text.replace("One", "Two"))]
)
def test_chunks_are_compared_with_the_inputs(edit: Edit, output: str, corpus: list[SourceFile]) -> None:
    write(output, cut(corpus, CHUNKER))
    path, at = find(output, "chunks", chunk_of("short.txt"))
    new = rewrite(output, path, lambda rows: edit(rows, at))
    fault, *more = verify(output, corpus).faults
    assert (fault.file, fault.row, fault.document_id) == (new, at, "short.txt")
    assert fault.check in ("slice", "chunk_id")
    assert {other.check for other in more} <= {"changes"}


def test_other_settings_give_other_texts_and_that_is_told(output: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Größe".encode("cp1252"))
    inputs = match([str(tmp_path / "a.txt")])
    write(output, cut(inputs, CHUNKER))
    (fault,) = verify(output, inputs, ReadSettings(charset="cp437")).faults
    path, at = find(output, "documents", lambda row: True)
    assert (fault.check, fault.file, fault.row) == ("text_sha256", path, at)
    assert fault.document_id == sources.address_id(str(tmp_path / "a.txt"))

    changed = setting(parser_version="0")
    rewrite(output, path, lambda rows: changed(rows, at))
    report = verify(output, inputs, ReadSettings(charset="cp437"))
    assert (report.ok, report.documents_changed) == (True, 1)


def test_a_text_that_other_settings_refuse_is_told(
    output: str, corpus: list[SourceFile], tmp_path: Path
) -> None:
    write(output, cut(corpus, CHUNKER))
    report = verify(output, corpus, parse=ParseSettings(max_text_bytes=40))
    assert {fault.check for fault in report.faults} == {"text_sha256"}
    assert {fault.document_id for fault in report.faults} == {
        note(tmp_path),
        "plain.txt",
        "tree.md",
        "scripts.md",
        "same.txt",
    }


def test_documents_that_one_side_lacks_are_told(
    output: str, corpus: list[SourceFile], tmp_path: Path
) -> None:
    write(output, cut(corpus, CHUNKER), KEEPING)
    new = (tmp_path / "corpus" / "note.txt").rename(tmp_path / "corpus" / "new.txt")
    rows = pq.read_table(tmp_path / "corpus" / "rows.parquet")
    pq.write_table(rows[:1], tmp_path / "corpus" / "rows.parquet")
    report = verify(output, match([str(tmp_path / "corpus")]))
    lost = [note(tmp_path), "blank.txt", "plain.txt", "tree.md", "scripts.md", "same.txt"]
    assert {(f.check, f.file, f.row, f.document_id) for f in report.faults} == {
        *(("unread", *find(output, "documents", document(name)), name) for name in lost),
        ("unlisted", str(new), None, sources.address_id(str(new))),
    }
    assert report.fault_counts == {"unread": 6, "unlisted": 1}


def test_a_document_that_the_ledger_lacks_is_told(
    output: str, corpus: list[SourceFile], tmp_path: Path
) -> None:
    write(output, cut(corpus, CHUNKER), KEEPING)
    path, at = find(output, "documents", document("blank.txt"))
    rewrite(output, path, lambda rows: drop(rows, at))
    (fault,) = verify(output, corpus).faults
    source = str(tmp_path / "corpus" / "rows.parquet")
    assert (fault.check, fault.file, fault.row, fault.document_id) == ("unlisted", source, 1, "blank.txt")


# The report.


def test_the_first_faults_are_kept_and_all_are_counted(output: str) -> None:
    elements = [CHUNKER.chunk_document(Document(f"d{number}", "Some words.")) for number in range(150)]
    write(output, elements)
    for path in sorted(Table(output).files):
        if path.startswith("chunks/"):
            rewrite(output, path, lambda rows: [row | {"overlap_chars": 1} for row in rows])
    report = verify(output)
    assert (len(report.faults), report.fault_counts) == (100, {"overlap": 150})


def test_a_report_is_json_and_lines_of_text(table: str) -> None:
    path, at = find(table, "chunks", chunk_of("short.txt"))
    new = rewrite(table, path, lambda rows: setting(token_count=plus(1))(rows, at))
    report = verify(table)
    held = json.loads(json.dumps(report.to_json()))
    assert held["ok"] is False
    assert held["fault_counts"] == {"token_count": 1, "ledger": 1}
    told = {fault["check"]: fault for fault in held["faults"]}["token_count"]
    assert told == {
        "file": new,
        "row": at,
        "document_id": "short.txt",
        "check": "token_count",
        "message": "says 16 tokens, there are 15",
    }
    fault = f"token_count: {new}, row {at}, document 'short.txt': says 16 tokens, there are 15"
    checked = report.checked
    lines = report.summary().splitlines()
    assert lines[:5] == [
        f"table      {table}, commit 1",
        f"files      {checked['files']}, {checked['bytes'] / 1e6:.1f} MB, {checked['rows']} rows",
        "documents  10: 7 compared with their text, 7 cut again",
        f"chunks     {checked['chunks']}",
        "faults     1 ledger, 1 token_count",
    ]
    assert fault in [line.strip() for line in lines[5:]]
    assert "faults     none" in VerifyReport("x", 1, held["checked"]).summary()
    assert str(Fault("f", None, None, "bytes", "m")) == "bytes: f: m"


def test_every_check_fails_in_some_test() -> None:
    broken = {check for *_, checks in ROW_DAMAGES.values() for check in checks}
    broken |= {check for _, checks in FILE_DAMAGES for check in checks}
    elsewhere = {"budget", "shard", "unlisted", "unread"}  # each has a test of its own
    assert broken | elsewhere == set(CHECKS)
