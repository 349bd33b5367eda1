"""One shard, from packs to staged files."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transforms.packs import PACKS, PackBuilder
from transforms.parquet_files import Layout
from transforms.paths import FileEntry, chunker_value, run_name, slug, staging
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Source
from transforms.rows import gathered
from transforms.schemas import SCHEMAS, fingerprint
from transforms.shards import write_empty, write_shard

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "characters", "ff", 10)
OTHER = replace(CHUNKER, name="token", hash="fedcba9876543210")
RUN = Run("run", 1_700_000_000_000_000, job_id="job")

Element = DocumentChunks | DeadLetter


def cut(
    document_id: str,
    *texts: str,
    uri: str = "",
    row: int | None = None,
    source: str = "corpus",
    **facts: object,
) -> DocumentChunks:
    """A document of `texts`, each of which is a chunk."""
    document = Document(
        document_id, "".join(texts), source=Source(source, uri, row), parser_name="plain_text", **facts
    )  # type: ignore[arg-type]
    chunks, start = [], 0
    for index, text in enumerate(texts):
        name = hashlib.sha256(repr((document_id, texts[: index + 1].count(text), text)).encode()).hexdigest()[
            :32
        ]
        span = (start, start + len(text))
        chunks.append(
            Chunk(name, document_id, index, text, len(text), (span,), span, 0, (1, 1), "body", "recursive")
        )
        start += len(text)
    return DocumentChunks(document, chunks, "ok" if texts else "blank", CHUNKER)


def packed(elements: Iterable[Element], run: Run = RUN, pack_bytes: int = 1 << 20) -> list[bytes]:
    """Packs of `elements`."""
    builder = PackBuilder(run, pack_bytes=pack_bytes)
    packs = [pack for element in elements for pack in builder.add(element)]
    return [pack for _, pack in packs + builder.flush()]


class Written:
    """What a shard's files hold."""

    def __init__(self, elements: Sequence[Element], **options: object) -> None:
        self.output = f"memory://{uuid4().hex}"
        self.entries = write_shard(0, packed(elements), RUN, self.output, **options)  # type: ignore[arg-type]

    def bytes(self, entry: FileEntry) -> bytes:
        found: bytes = fsspec.filesystem("memory").cat_file(
            f"{self.output.removeprefix('memory:/')}/{entry.staged}"
        )
        return found

    def file(self, entry: FileEntry) -> pq.ParquetFile:
        return pq.ParquetFile(pa.BufferReader(self.bytes(entry)))

    def entries_of(self, kind: str) -> list[FileEntry]:
        return [entry for entry in self.entries if entry.kind == kind]

    def rows(self, kind: str) -> list[dict[str, object]]:
        return [row for entry in self.entries_of(kind) for row in self.file(entry).read().to_pylist()]


@given(
    parts=st.lists(st.lists(st.none() | st.text(max_size=3), max_size=5), min_size=1, max_size=6),
    data=st.data(),
)
def test_rows_gathered_from_parts_are_those_that_were_asked_for(
    parts: list[list[str | None]], data: st.DataObject
) -> None:
    values = [value for part in parts for value in part]
    texts = pa.chunked_array(parts, pa.large_string())
    rows = pa.table({"number": pa.array(range(len(values)), pa.int64()), "text": texts, "same": texts})
    order = data.draw(st.lists(st.sampled_from(range(len(values))), min_size=1)) if values else []
    if order:
        found = gathered(rows, np.array(order), "text")
        assert found.equals(rows.take(order))
        assert found["text"].num_chunks == 1


# Partition values.


@pytest.mark.parametrize("value", ["en", "recursive", "my_source-2", "a" * 63, "x1", "a-"])
def test_a_plain_name_is_its_own_slug(value: str) -> None:
    assert slug(value) == value


@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_value_is_unknown(value: str | None) -> None:
    assert slug(value) == "unknown"


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("News", "news-"),
        ("_lang", "lang-"),
        (".hidden", "hidden-"),
        ("..", "v-"),
        ("../../etc/passwd", "etc-passwd-"),
        ("a%2fb\\c//d", "a-2fb-c-d-"),
        ("2024", "v-2024-"),
        ("12e45678", "v-12e45678-"),
        ("été", "ete-"),
        ("日本語", "v-"),
        ("a b\n", "a-b-"),
        ("en\n", "en-"),
        ("x" * 300, "x" * 50 + "-"),
        ("é" * 150, "e" * 50 + "-"),
        ("name-0123456789ab", "name-0123456789ab-"),
        ("\udce9", "v-"),
        ("true", "true-"),
        ("null", "null-"),
        ("epoch", "epoch-"),
    ],
)
def test_any_other_value_is_spelled_out_and_told_apart_by_a_hash(value: str, start: str) -> None:
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    assert slug(value) in (f"{start}{digest}", f"{start.rstrip('-')}-{digest}")


@given(st.text() | st.text("aA_-.0/\\%é", max_size=80))
@example("a" * 64)
@example("A" * 1000)
def test_every_slug_is_read_back_as_a_string_by_all(value: str) -> None:
    found = slug(value)
    assert re.fullmatch(r"[a-z][a-z0-9_-]{0,62}(-[0-9a-f]{12})?", found)
    assert len(found) <= 63


def test_values_that_differ_in_case_differ_also_where_files_do_not() -> None:
    assert len({slug(value).lower() for value in ("news", "News", "NEWS", "news ", "nèws")}) == 5


def test_a_chunker_has_a_partition_value_of_its_own() -> None:
    assert chunker_value(CHUNKER) == "recursive-0123456789ab"
    assert chunker_value(None) == "unknown"


@pytest.mark.parametrize("run_id", ["../../x", "..", ".", "a/b", "", "/etc", "a\\b", "é"])
def test_a_run_id_never_leads_out_of_the_staging_folder(run_id: str) -> None:
    assert re.fullmatch(r"control/staging/[a-z][a-z0-9-]*", staging(run_id))


@pytest.mark.parametrize("run_id", ["2024-01-01T00.00", "9f8e", "Run_1"])
def test_a_plain_run_id_is_its_own_name(run_id: str) -> None:
    assert run_name(run_id) == run_id


# Rows.


def test_a_chunk_row_has_everything_about_chunk_document_and_run() -> None:
    item = cut(
        "d", "Alpha", " beta", uri="s3://b/k", title="T", language="en", acl_labels=("a",), metadata={"x": 1}
    )
    written = Written([item])
    first, second = written.rows("chunks")
    assert written.file(written.entries[0]).schema_arrow.equals(SCHEMAS["chunks"])
    assert (first["text"], second["text"], second["chunk_index"], second["chunk_count"]) == (
        "Alpha",
        " beta",
        1,
        2,
    )
    shared = {
        "document_id": "d",
        "title": "T",
        "language": "en",
        "media_type": "text/plain",
        "acl_labels": ["a"],
        "metadata": '{"x":1}',
        "source_name": "corpus",
        "source_uri": "s3://b/k",
        "parser_name": "plain_text",
        "chunker_name": "recursive",
        "chunker_version": 1,
        "chunker_hash": CHUNKER.hash,
        "tokenizer": "characters",
        "run_id": "run",
        "job_id": "job",
    }
    for row in (first, second):
        assert {name: row[name] for name in shared} == shared
        assert row["created_at"].timestamp() == 1_700_000_000  # type: ignore[attr-defined]


def test_rows_are_sorted_by_document_and_index_and_say_so() -> None:
    names = [f"d{number}" for number in range(30)]
    random.Random(0).shuffle(names)
    written = Written([cut(name, "a", "b", "c") for name in names])
    keys = [(row["document_id"], row["chunk_index"]) for row in written.rows("chunks")]
    assert keys == sorted(keys)
    declared = written.file(written.entries[0]).metadata.row_group(0).sorting_columns
    assert [column.column_index for column in declared] == [1, 2]


def test_the_ledger_has_a_row_for_every_document_that_came() -> None:
    blank = cut("blank")
    skipped = replace(cut("skipped"), status="skipped", reason="duplicate text")
    failed = DeadLetter(
        "failed", "parse", "not_text", "is no text", Source("corpus", "u"), media_type="image/png"
    )
    written = Written([cut("ok", "one", "two"), blank, skipped, failed], default_chunker=CHUNKER)
    ledger = {row["document_id"]: row for row in written.rows("documents")}
    assert {name: (row["status"], row["reason"], row["chunk_count"]) for name, row in ledger.items()} == {
        "ok": ("ok", None, 2),
        "blank": ("blank", None, 0),
        "skipped": ("skipped", "duplicate text", 0),
        "failed": ("failed", "not_text", 0),
    }
    assert {row["chunker_hash"] for row in ledger.values()} == {CHUNKER.hash}
    assert ledger["failed"]["coverage"] is None
    assert [row["message"] for row in written.rows("dead_letters")] == ["is no text"]
    assert {row["document_id"] for row in written.rows("chunks")} == {"ok"}


def test_the_ledger_keeps_the_text_if_the_run_does() -> None:
    run = replace(RUN, keep_text=True)
    output = f"memory://{uuid4().hex}"
    entries = write_shard(0, packed([cut("d", "one", "two")], run), run, output)
    path = f"{output.removeprefix('memory:/')}/{entries[1].staged}"
    table = pq.read_table(pa.BufferReader(fsspec.filesystem("memory").cat_file(path)))
    assert table["text"].to_pylist() == ["onetwo"]


# Duplicate ids.


def test_of_two_documents_with_one_id_the_first_by_source_stands() -> None:
    items = [
        cut("d", "from b", uri="b"),
        cut("d", "from a, row 2", uri="a", row=2),
        cut("d", "row 1", uri="a", row=1),
    ]
    written = Written([*items, cut("e", "other")])
    assert [row["text"] for row in written.rows("chunks")] == ["row 1", "other"]

    letters = written.rows("dead_letters")
    assert [(row["source_uri"], row["source_row"]) for row in letters] == [("a", 2), ("b", None)]
    assert {(row["stage"], row["reason"], row["documents"]) for row in letters} == {
        ("write", "duplicate_document_id", 1)
    }
    assert (
        letters[0]["message"]
        == "the id 'd' is taken by another document (a, row 1); give every document an id of its own"
    )

    ledger = [row for row in written.rows("documents") if row["document_id"] == "d"]
    assert [(row["status"], row["reason"], row["chunk_count"], row["token_count"]) for row in ledger] == [
        ("ok", None, 1, 5),
        ("failed", "duplicate_document_id", 0, 0),
        ("failed", "duplicate_document_id", 0, 0),
    ]


def test_a_blank_document_holds_its_id_too() -> None:
    written = Written([cut("d", "text", uri="b"), cut("d", uri="a")])
    assert written.entries_of("chunks") == []
    assert [row["status"] for row in written.rows("documents")] == ["blank", "failed"]


def test_a_document_that_came_twice_in_every_respect_is_written_once() -> None:
    written = Written([cut("d", "one", "two"), cut("d", "one", "two")])
    assert [row["text"] for row in written.rows("chunks")] == ["one", "two"]
    assert [row["status"] for row in written.rows("documents")] == ["ok", "failed"]


def test_a_document_may_be_cut_by_two_chunkers() -> None:
    item = cut("d", "one", uri="a")
    written = Written([item, replace(item, chunker=OTHER), replace(cut("d", "bad", uri="b"), chunker=OTHER)])
    assert [(row["chunker_name"], row["text"]) for row in written.rows("chunks")] == [
        ("recursive", "one"),
        ("token", "one"),
    ]
    assert [row["source_uri"] for row in written.rows("dead_letters")] == ["b"]


def test_a_failed_document_takes_no_id() -> None:
    written = Written(
        [DeadLetter("d", "read", "broken", "m", Source("corpus", "a")), cut("d", "text", uri="b")]
    )
    assert [row["text"] for row in written.rows("chunks")] == ["text"]


# Handed case ids-config-01, the part of the files: equal text in two files is six rows with six ids.
def test_equal_text_in_two_documents_is_never_one_row() -> None:
    lines = ("Same line.\n\n", "Same line.\n\n", "Same line.\n")
    rows = Written([cut("in/one.md", *lines), cut("in/two.md", *lines)]).rows("chunks")
    assert len(rows) == len({row["chunk_id"] for row in rows}) == 6


# Bytes depend on the rows alone.

MIXED: list[Element] = [
    cut("a", "one", "two"),
    cut("a", "three", uri="z"),
    cut("a", "one", "two"),
    cut("b", "x", "y", source="Other"),
    replace(cut("c", "q"), chunker=OTHER),
    cut("e"),
    DeadLetter("a", "read", "broken", "m1", Source("corpus", "u")),
    DeadLetter("a", "read", "broken", "m2", Source("corpus", "u")),
]


@given(st.permutations(MIXED), st.sampled_from([1, 700, 1 << 20]))
@settings(max_examples=15)
def test_the_same_rows_give_the_same_bytes_in_any_order_and_packing(order: list[Element], size: int) -> None:
    output = f"memory://{uuid4().hex}"
    packs = packed(order, pack_bytes=size)
    random.Random(size).shuffle(packs)
    entries = write_shard(0, packs, RUN, output, CHUNKER)
    fsspec.filesystem("memory").rm(output, recursive=True)
    assert {replace(entry, staged="") for entry in map(hashable, entries)} == EXPECTED


def hashable(entry: FileEntry) -> FileEntry:
    """`entry` with its tally as text."""
    return replace(entry, staged="", tally=json.dumps(entry.tally, sort_keys=True))  # type: ignore[arg-type]


EXPECTED = set(map(hashable, Written(MIXED, default_chunker=CHUNKER).entries))


# Files.


def test_partitions_are_paths_that_an_ordinary_reader_finds(tmp_path: Path) -> None:
    long = "x" * 300
    items = [cut("a", "one", source="_lang"), cut("b", "two", source=long), cut("c", "three", source="en")]
    items.append(replace(cut("d", "four", source=".hidden"), chunker=OTHER))
    for entry in write_shard(0, packed(items), RUN, str(tmp_path)):
        assert not Path(entry.path).name.startswith((".", "_"))
        assert max(len(part) for part in entry.path.split("/")) < 255
        target = tmp_path / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / entry.staged).rename(target)
    table = ds.dataset(tmp_path / "chunks", partitioning="hive").to_table()
    found = {row["text"]: (row["chunker"], row["source"], row["source_name"]) for row in table.to_pylist()}
    assert found == {
        "one": ("recursive-0123456789ab", slug("_lang"), "_lang"),
        "two": ("recursive-0123456789ab", slug(long), long),
        "three": ("recursive-0123456789ab", "en", "en"),
        "four": ("token-fedcba987654", slug(".hidden"), ".hidden"),
    }


def test_documents_that_no_chunker_saw_are_filed_under_the_runs_own() -> None:
    letter = DeadLetter("d", "read", "broken", "m", Source("corpus"))
    assert {entry.partition for entry in Written([letter], default_chunker=OTHER).entries} == {
        "chunker=token-fedcba987654/source=corpus"
    }
    assert {entry.partition for entry in Written([letter]).entries} == {"chunker=unknown/source=corpus"}


def test_an_entry_tells_what_is_in_its_file() -> None:
    written = Written([cut("a", "123", "4567890123"), cut("b", "12345678901", "1")])
    chunks, documents = written.entries
    data = written.bytes(chunks)
    digest = hashlib.sha256(data).hexdigest()
    assert (chunks.bytes, chunks.sha256) == (len(data), digest)
    assert chunks.path == (
        f"chunks/chunker=recursive-0123456789ab/source=corpus/part-00000-of-00001-{digest[:16]}.parquet"
    )
    assert chunks.staged.startswith("control/staging/run/")
    assert (chunks.rows, chunks.documents, chunks.tokens) == (4, 2, 25)
    assert (chunks.min_document_id, chunks.max_document_id) == ("a", "b")
    assert chunks.chunker == CHUNKER
    assert chunks.tally == {
        "cut": {"chunks": 4, "tokens": 25},
        "fill": {"10": 1, "30": 1, "100": 1, "101": 1},
    }
    assert (documents.rows, documents.documents, documents.tokens) == (2, 2, 25)
    assert documents.tally["status"] == {"ok": 2}
    assert documents.tally["parsers"] == {"plain_text:text/plain": 2}
    assert documents.tally["sums"]["byte_count"] == 25


def test_an_entry_can_be_pickled_and_written_as_json() -> None:
    for entry in Written(MIXED).entries:
        assert pickle.loads(pickle.dumps(entry)) == entry
        facts = json.loads(json.dumps(asdict(entry)))
        assert (
            FileEntry(**{**facts, "chunker": facts["chunker"] and ChunkerRecord(**facts["chunker"])}) == entry
        )


def test_a_file_tells_its_chunker_and_schema() -> None:
    for entry in Written(MIXED, default_chunker=CHUNKER).entries:
        assert entry.chunker
    written = Written([cut("a", "one")])
    facts = written.file(written.entries[0]).schema_arrow.metadata
    assert json.loads(facts[b"chunkmill.chunker"]) == asdict(CHUNKER)
    assert facts[b"chunkmill.schema"].decode() == fingerprint(SCHEMAS["chunks"])


def test_an_empty_file_has_the_whole_schema() -> None:
    output = f"memory://{uuid4().hex}"
    entry = write_empty(RUN, output, CHUNKER)
    data = fsspec.filesystem("memory").cat_file(f"{output.removeprefix('memory:/')}/{entry.staged}")
    table = pq.read_table(pa.BufferReader(data))
    assert (len(table), entry.rows, table.schema.equals(SCHEMAS["chunks"])) == (0, 0, True)


def test_a_shard_without_rows_writes_nothing() -> None:
    assert Written([]).entries == []


# Row groups and sizes.


def test_row_groups_are_bounded_by_rows() -> None:
    written = Written(
        [cut(f"d{number}", *"abcdefg") for number in range(10)], layout=Layout(row_group_rows=16)
    )
    file = written.file(written.entries[0])
    assert [file.metadata.row_group(number).num_rows for number in range(5)] == [16, 16, 16, 16, 6]


def test_row_groups_are_bounded_by_bytes_and_a_larger_row_stands_alone() -> None:
    texts = ["s" * 3000] * 10 + ["L" * 50_000] + ["t" * 3000] * 4
    written = Written([cut("d", *texts)], layout=Layout(row_group_bytes=16_000))
    file = written.file(written.entries[0])
    groups = [file.read_row_group(number)["text"].to_pylist() for number in range(file.num_row_groups)]
    assert [text for group in groups for text in group] == texts
    assert ["L" * 50_000] in groups
    assert all(sum(map(len, group)) <= 16_000 for group in groups if len(group) > 1)
    assert max(map(len, groups)) > 2


def test_what_the_document_gives_to_each_row_counts_too() -> None:
    written = Written(
        [cut("d", *["t"] * 50, metadata={"big": "m" * 10_000}, acl_labels=("l" * 5000,))],
        layout=Layout(row_group_bytes=64_000),
    )
    metadata = written.file(written.entries[0]).metadata
    assert max(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)) <= 4


def test_files_roll_in_sorted_order() -> None:
    noise = random.Random(0)
    texts = ["".join(noise.choices("abcdefghijklmnop", k=400)) for _ in range(300)]
    layout = Layout(row_group_rows=20, file_bytes=20_000)
    written = Written([cut(f"d{n:03d}", *texts[n * 3 : n * 3 + 3]) for n in range(100)], layout=layout)
    chunks = written.entries_of("chunks")
    assert len(chunks) > 3
    assert sum(entry.rows for entry in chunks) == 300
    assert all(entry.bytes >= layout.file_bytes for entry in chunks[:-1])
    edges = [edge for entry in chunks for edge in (entry.min_document_id, entry.max_document_id)]
    assert edges == sorted(edges)  # type: ignore[type-var]
    assert [row["text"] for row in written.rows("chunks")] == texts


def test_a_document_on_an_edge_of_row_groups_is_counted_once() -> None:
    (chunks, _) = Written([cut("a", *"123456"), cut("b", *"12")], layout=Layout(row_group_rows=4)).entries
    assert chunks.documents == 2


# Encodings.


def encodings(layout: Layout) -> dict[str, set[str]]:
    written = Written([cut("a", "one", "two", title="T")], layout=layout)
    group = written.file(written.entries[0]).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert all(column.has_column_index and column.has_offset_index for column in columns)
    return {column.path_in_schema: set(column.encodings) for column in columns}


def test_the_standard_profile_uses_delta_encodings() -> None:
    found = encodings(Layout())
    assert "DELTA_LENGTH_BYTE_ARRAY" in found["text"] & found["chunk_id"]
    for name in ("chunk_index", "token_count", "start_char", "end_byte", "spans.list.element.start"):
        assert "DELTA_BINARY_PACKED" in found[name]
    for name in ("document_id", "title", "headings.list.element", "source_uri", "created_at", "metadata"):
        assert "RLE_DICTIONARY" in found[name]


def test_the_compat_profile_uses_plain_and_dictionary_encodings_only() -> None:
    assert set().union(*encodings(Layout(profile="compat")).values()) == {"PLAIN", "RLE", "RLE_DICTIONARY"}


@pytest.mark.skipif(int(pa.__version__.partition(".")[0]) < 25, reason="tells of bloom filters since 25")
def test_chunk_ids_have_a_bloom_filter() -> None:
    written = Written([cut("a", "one")])
    group = written.file(written.entries[0]).metadata.row_group(0)
    assert group.column(0).path_in_schema == "chunk_id"
    assert group.column(0).bloom_filter_length > 0


def test_pages_have_checksums() -> None:
    written = Written([cut("a", *(f"text {number}" for number in range(500)))])
    data = bytearray(written.bytes(written.entries[0]))
    group = written.file(written.entries[0]).metadata.row_group(0)
    data[group.column(4).data_page_offset + 60] ^= 1
    read = partial(pq.read_table, pa.BufferReader(bytes(data)), page_checksum_verification=True)
    with pytest.raises(OSError, match="CRC checksum"):
        read()


def test_no_column_overflows_at_two_gib_before_it_is_cut_into_row_groups() -> None:
    assert pa.string() not in [field.type for schema in PACKS.values() for field in schema]
