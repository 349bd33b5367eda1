"""What a run did, from the counts of its files."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa

from transforms.paths import FileEntry
from transforms.provenance import ChunkerRecord, Run
from transforms.run_report import Report, build, summary, tally, versions, with_seconds
from transforms.schemas import CHUNKS, DEAD_LETTERS, DOCUMENTS

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "characters", "ff", 10)
RUN = Run("run", 1_700_000_000_000_000, settings={"strategy": "recursive"})


def rows(schema: pa.Schema, *values: dict[str, object]) -> pa.Table:
    """Rows with nothing but `values`."""
    filled = [{"document_id": "d", "chunk_id": "c", "chunk_index": 0, "text": "t", **row} for row in values]
    return pa.Table.from_pylist(filled, schema=schema)


def entry(kind: str, table: pa.Table, tokens: int = 0) -> FileEntry:
    """The entry of a file with these rows."""
    counts = tally(kind, table, CHUNKER)
    return FileEntry(kind, "", "", len(table), 1000, "", None, None, 1, tokens, CHUNKER, counts)  # type: ignore[arg-type]


CHUNK_ROWS = rows(CHUNKS, *({"token_count": count} for count in (0, 1, 2, 10, 10, 11, 500)))
DOCUMENT_ROWS = rows(
    DOCUMENTS,
    *(
        {
            "status": status,
            "parser_name": parser,
            "media_type": media,
            "byte_count": 60,
            "char_count": 50,
            "lost_chars": lost,
            "over_budget_count": over,
        }
        for status, parser, media, lost, over in (
            ("ok", "markdown", "text/markdown", 0, 1),
            ("ok", "plain_text", "text/x-rst", 4, 1),
            ("ok", "plain_text", "text/plain", 0, 0),
            ("blank", "plain_text", "text/plain", 0, 0),
            ("skipped", "plain_text", "text/plain", 0, 0),
            ("failed", "plain_text", "text/plain", None, 0),
        )
    ),
)
LETTER_ROWS = rows(
    DEAD_LETTERS,
    {"stage": "read", "reason": "broken", "message": "m", "documents": 40},
    {"stage": "read", "reason": "broken", "message": "m", "documents": 2},
    {"stage": "write", "reason": "duplicate_document_id", "message": "m", "documents": 1},
)


def report(*entries: FileEntry, outcome: str = "committed") -> Report:
    """A report of `entries`."""
    chunkers = {"recursive-0123456789ab": CHUNKER}
    return build(entries, RUN, chunkers, seq=3, outcome=outcome, replaced=2)


FULL = report(
    entry("chunks", CHUNK_ROWS, tokens=534),
    entry("chunks", CHUNK_ROWS.slice(3, 1), tokens=10),
    entry("documents", DOCUMENT_ROWS),
    entry("dead_letters", LETTER_ROWS),
)


def test_every_document_that_came_in_is_in_one_state() -> None:
    documents = dict(FULL["documents"])
    assert documents == {"in": 48, "ok": 3, "blank": 1, "skipped": 1, "failed": 43}
    assert documents.pop("in") == sum(documents.values())


def test_counts_add_up_over_files() -> None:
    assert (FULL["chunks"], FULL["tokens"], FULL["over_budget"]) == (8, 544, 2)
    assert (FULL["bytes"], FULL["characters"], FULL["lost_characters"]) == (300, 250, 4)
    assert FULL["coverage"] == 1 - 4 / 250
    assert FULL["files"]["chunks"] == {"files": 2, "rows": 8, "bytes": 2000}


def test_fill_counts_tenths_of_the_budget_and_what_is_over_it() -> None:
    assert {name: count for name, count in FULL["fill"].items() if count} == {
        "0.1": 2,
        "0.2": 1,
        "1.0": 3,
        "over": 2,
    }
    assert len(FULL["fill"]) == 11
    assert sum(FULL["fill"].values()) == FULL["chunks"]
    assert FULL["fill_percentiles"] == {"10": 0.01, "50": 1.0, "90": 1.01}


def test_dead_letters_are_counted_by_stage_and_reason() -> None:
    assert FULL["dead_letters"] == [
        {"stage": "read", "reason": "broken", "letters": 2, "documents": 42},
        {"stage": "write", "reason": "duplicate_document_id", "letters": 1, "documents": 1},
    ]


def test_media_types_are_told_with_their_parser_and_what_had_none() -> None:
    assert FULL["media_types"] == [
        {"parser": "plain_text", "media_type": "text/plain", "documents": 3},
        {"parser": "markdown", "media_type": "text/markdown", "documents": 1},
        {"parser": "plain_text", "media_type": "text/x-rst", "documents": 1},
    ]
    assert FULL["read_as_plain_text"] == {"text/x-rst": 1}


def test_run_settings_chunkers_and_versions_are_told() -> None:
    assert (FULL["run_id"], FULL["mode"], FULL["seq"]) == ("run", "overwrite", 3)
    assert FULL["created_at"] == "2023-11-14T22:13:20+00:00"
    assert FULL["settings"] == {"strategy": "recursive"}
    assert FULL["chunkers"]["recursive-0123456789ab"]["hash"] == CHUNKER.hash
    assert set(versions()) == {"chunkmill", "python", "apache_beam", "pyarrow", "tiktoken"}
    assert versions()["pyarrow"] == pa.__version__


def test_a_run_without_anything_has_a_report_too() -> None:
    empty = report()
    assert empty["documents"] == {"in": 0, "ok": 0, "blank": 0, "skipped": 0, "failed": 0}
    assert (empty["coverage"], empty["fill_percentiles"]["50"]) == (1.0, None)
    assert "documents  0\n" in summary(empty)


def test_a_report_is_json() -> None:
    assert json.loads(json.dumps(FULL)) == FULL


def test_a_chunk_without_a_chunker_has_no_budget_to_fill() -> None:
    assert tally("chunks", CHUNK_ROWS, None) == {"cut": {"chunks": 7, "tokens": 534}}


def test_a_large_chunk_does_not_overflow_the_percentage() -> None:
    table = rows(CHUNKS, {"token_count": 2**31 - 1})
    assert tally("chunks", table, replace(CHUNKER, chunk_size=2**31 - 1))["fill"] == {"100": 1}


def test_the_summary_is_plain_lines() -> None:
    assert summary(with_seconds(FULL, {"read": 1.234, "write": 2})).splitlines() == [
        "documents  48: 3 ok, 1 blank, 1 skipped, 43 failed",
        "failed     42 read: broken",
        "failed     1 write: duplicate_document_id",
        "plain text 1 of text/x-rst, for want of a parser",
        "text       0.0 MB, 250 characters",
        "chunks     8, 544 tokens, half of them fill 100% of the budget or more, 2 over it",
        "coverage   98.4000%, 4 characters lost",
        "files      4, 0.0 MB",
        "table      committed, commit 3, overwrite, 2 files replaced",
        "seconds    read 1.2, write 2.0",
    ]


def test_seconds_are_added_without_touching_the_report() -> None:
    timed = with_seconds(FULL, {"read": 1.0})
    assert (timed["seconds"], FULL["seconds"]) == ({"read": 1.0}, {})
