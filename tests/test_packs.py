"""Rows on their way to the sink."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

from transforms.packs import PackBuilder, chunker_json, read_packs, shard_of
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Location, Source

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "characters", "ff", 10)
RUN = Run("run", 1)


def cut(document: Document, *texts: str) -> DocumentChunks:
    """`document`, cut into `texts`."""
    chunks, start, line = [], 0, 1
    for index, text in enumerate(texts):
        first, end = len(document.text[:start].encode()), start + len(text)
        chunks.append(
            Chunk(
                chunk_id=hashlib.sha256(repr((document.document_id, index, text)).encode()).hexdigest()[:32],
                document_id=document.document_id,
                index=index,
                text=text,
                token_count=len(text),
                spans=((start, end),),
                byte_span=(first, first + len(text.encode())),
                overlap=0,
                lines=(line, line + text.count("\n")),
                kind="body",
                strategy="recursive",
            )
        )
        start, line = end, line + text.count("\n")
    return DocumentChunks(document, chunks, "ok", CHUNKER)


def whole(document_id: str, *texts: str, **facts: object) -> DocumentChunks:
    return cut(Document(document_id, "".join(texts), **facts), *texts)  # type: ignore[arg-type]


def rows(*elements: DocumentChunks | DeadLetter, run: Run = RUN) -> dict[str, list[dict[str, object]]]:
    builder = PackBuilder(run)
    packs = [pack for element in elements for _, pack in builder.add(element)]
    packs += [pack for _, pack in builder.flush()]
    return {kind: table.to_pylist() for kind, table in read_packs(packs).items()}


# Shards.


def test_the_shard_of_a_document_is_the_same_for_ever() -> None:
    assert [shard_of(name, 1000) for name in ("", "a", "doc-1", "ü", "\ud800")] == [652, 250, 401, 28, 399]


def test_documents_spread_over_all_shards() -> None:
    counts = [0] * 8
    for number in range(4000):
        counts[shard_of(f"document {number}", 8)] += 1
    assert min(counts) > 400


def test_a_document_goes_to_one_shard_with_all_of_its_rows() -> None:
    builder = PackBuilder(replace(RUN, shards=64))
    builder.add(whole("d", "one", "two"))
    builder.add(DeadLetter("d", "read", "broken", "m"))
    assert {shard for shard, _ in builder.flush()} == {shard_of("d", 64)}


# Rows.


def test_a_chunk_travels_with_all_it_knows() -> None:
    box = (1.0, 2.0, 3.5, 4.0)
    item = whole("d", "Alpha ", "béta\n")
    rich = item.chunks[1]._replace(
        spans=((6, 8), (9, 11)),
        overlap=2,
        heading_level=2,
        heading_path=("One", "Two"),
        parent_id=item.chunks[0].chunk_id,
        context="One > Two",
        locations=(Location(4, box), Location(3)),
        images=("a.png",),
        is_derived=True,
        over_budget=True,
    )
    plain, row = rows(replace(item, chunks=[item.chunks[0], rich]))["chunks"]

    assert (plain["spans"], plain["headings"], plain["locations"], plain["page_start"]) == (
        None,
        [],
        [],
        None,
    )
    assert row.pop("claim") == plain["claim"]
    assert row == {
        "chunk_id": rich.chunk_id,
        "chunk_index": 1,
        "text": "béta\n",
        "token_count": 5,
        "context": "One > Two",
        "start_char": 6,
        "end_char": 11,
        "start_byte": 6,
        "end_byte": 12,
        "spans": [{"start": 6, "end": 8}, {"start": 9, "end": 11}],
        "overlap_chars": 2,
        "line_start": 1,
        "line_end": 2,
        "kind": "body",
        "heading_level": 2,
        "headings": ["One", "Two"],
        "parent_id": item.chunks[0].chunk_id,
        "page_start": 3,
        "page_end": 4,
        "locations": [
            {"page_number": 4, "bbox": {"l": 1.0, "t": 2.0, "r": 3.5, "b": 4.0}},
            {"page_number": 3, "bbox": None},
        ],
        "images": ["a.png"],
        "is_derived": True,
        "over_budget": True,
    }


def test_a_document_is_counted_where_it_is_packed() -> None:
    item = whole("d", "Zwölf", " Boxkämpfer 🥊")
    (row,) = rows(replace(item, lost=5))["documents"]
    text = item.document.text
    assert row["text_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert (row["char_count"], row["byte_count"], row["token_count"]) == (
        len(text),
        len(text.encode()),
        len(text),
    )
    assert (row["chunk_count"], row["lost_chars"], row["coverage"]) == (2, 5, 1 - 5 / len(text))
    assert (row["status"], row["over_budget_count"], row["text"]) == ("ok", 0, None)
    assert json.loads(str(row["chunker"]))["hash"] == CHUNKER.hash


def test_a_blank_document_is_covered() -> None:
    item = DocumentChunks(Document("d", ""), [], "blank", CHUNKER, reason="no text")
    (row,) = rows(item)["documents"]
    assert (row["coverage"], row["chunk_count"], row["reason"]) == (1.0, 0, "no text")


def test_the_text_is_kept_only_on_request() -> None:
    item = whole("d", "text")
    assert rows(item)["documents"][0]["text"] is None
    assert rows(item, run=replace(RUN, keep_text=True))["documents"][0]["text"] == "text"


def test_a_dead_letter_travels_with_its_source() -> None:
    source = Source("corpus", "s3://b/k", 7, "v", "e", 12, 1_700_000_000_000_000, "aa", "s3://b/t", "ff")
    (row,) = rows(DeadLetter("d", "parse", "not_text", "is no text", source, 3, "image/png"))["dead_letters"]
    modified = row.pop("source_modified_at")
    assert modified.timestamp() == 1_700_000_000  # type: ignore[attr-defined]
    assert row == {
        "document_id": "d",
        "stage": "parse",
        "reason": "not_text",
        "message": "is no text",
        "documents": 3,
        "source_name": "corpus",
        "source_uri": "s3://b/k",
        "source_row": 7,
        "source_version": "v",
        "source_etag": "e",
        "source_size": 12,
        "content_sha256": "aa",
        "media_type": "image/png",
        "input_uri": "s3://b/t",
        "input_state": "ff",
    }


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, None),
        ({"b": 1, "a": {"d": "é", "c": None}}, '{"a":{"c":null,"d":"é"},"b":1}'),
        ({"when": date(2024, 2, 29)}, '{"when":"2024-02-29"}'),
    ],
)
def test_metadata_is_canonical_json(metadata: Mapping[str, object], expected: str | None) -> None:
    assert rows(whole("d", "x", metadata=metadata))["documents"][0]["metadata"] == expected


def test_names_that_utf8_cannot_hold_are_written_with_a_replacement() -> None:
    broken = Source(uri="/data/\udce9t\udce9.txt")
    written = rows(
        whole("\udce9", "text", source=broken, acl_labels=("\ud800",)),
        DeadLetter("x", "read", "broken", "no \ud83e", source=broken),
    )
    (document,), (letter,) = written["documents"], written["dead_letters"]
    assert (document["document_id"], document["source_uri"]) == ("\ufffd", "/data/\ufffdt\ufffd.txt")
    assert (document["acl_labels"], letter["message"]) == (["\ufffd"], "no \ufffd")


# Claims: what joins a chunk to its document.


def test_equal_documents_have_equal_claims_and_others_have_not() -> None:
    item = whole("d", "text")
    variants = [
        item,
        replace(item, document=replace(item.document, source=Source(uri="b"))),
        replace(item, document=replace(item.document, source=Source(row=1))),
        replace(item, document=replace(item.document, title="T")),
        replace(item, chunker=replace(CHUNKER, hash="f" * 16)),
        replace(item, chunks=[item.chunks[0]._replace(chunk_id="0" * 32)]),
    ]
    claims = [row["claim"] for row in rows(*variants, whole("d", "text"))["documents"]]
    assert claims[0] == claims[-1]
    assert len(set(claims)) == len(variants)


# Packs.


def test_every_row_arrives_once_whatever_the_size_of_the_packs() -> None:
    items = [
        whole(f"d{number}", *(f"text {number}.{part} " * 9 for part in range(40))) for number in range(20)
    ]
    letters = [DeadLetter(f"l{number}", "read", "broken", "m" * number) for number in range(20)]
    expected = rows(*items, *letters)
    for size in (1, 5000, 60_000):
        builder = PackBuilder(replace(RUN, shards=3), pack_bytes=size, held_bytes=3 * size)
        packs = [pack for item in (*items, *letters) for pack in builder.add(item)] + builder.flush()
        found = read_packs(pack for _, pack in packs)
        for kind, key in (
            ("chunks", "chunk_id"),
            ("documents", "document_id"),
            ("dead_letters", "document_id"),
        ):
            assert sorted(found[kind].to_pylist(), key=lambda row: row[key]) == sorted(
                expected[kind], key=lambda row: str(row[key])
            )
        assert builder.flush() == []


def test_packs_are_bounded_also_within_one_document() -> None:
    builder = PackBuilder(RUN, pack_bytes=100_000)
    packs = builder.add(whole("d", *(f"{number:06d}" * 100 for number in range(1000))))
    sizes = [read_packs([pack])["chunks"].nbytes for _, pack in packs]
    assert len(sizes) > 6
    assert max(sizes) < 150_000


def test_bytes_count_and_not_characters() -> None:
    def packs(text: str) -> int:
        return len(PackBuilder(RUN, pack_bytes=100_000).add(whole("d", *[text] * 200)))

    assert packs("漢" * 1000) > 2 * packs("k" * 1000)


def test_everything_is_flushed_when_too_much_is_held() -> None:
    builder = PackBuilder(replace(RUN, shards=50), pack_bytes=1 << 30, held_bytes=20_000)
    flushed = [builder.add(whole(f"d{number}", "text")) for number in range(60)]
    full = next(packs for packs in flushed if packs)
    assert len({shard for shard, _ in full}) > 10


def test_a_pack_is_compressed_flat_columns() -> None:
    builder = PackBuilder(RUN)
    builder.add(whole("d", *["the same words again and again " * 20] * 100))
    (_, pack), _ = builder.flush()
    assert isinstance(pack, bytes)
    assert len(pack) < 30_000
    assert pa.ipc.open_stream(pack).schema.metadata == {b"kind": b"chunks"}


def test_a_chunker_is_told_in_canonical_json() -> None:
    assert ChunkerRecord(**json.loads(chunker_json(CHUNKER))) == CHUNKER
