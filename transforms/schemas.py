"""The frozen Arrow schemas of the table: every file of a kind has exactly this one.

Plain `string`, no dictionary, map, view, unsigned or nanosecond types: each of them is unreadable somewhere.
New columns are nullable and go at the end.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """A column of the table.

    Args:
        name: Its name.
        type: Its Arrow type.
        description: What it holds, for readers of the table.
        required: Whether it is never null.
    """

    name: str
    type: pa.DataType
    description: str
    required: bool = False


def _list(of: pa.DataType) -> pa.DataType:
    # Named as Parquet names it, so that readers that ignore the stored Arrow schema see the same type.
    return pa.list_(pa.field("element", of))


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


_TEXT = pa.string()
_INT = pa.int32()
_LONG = pa.int64()
_REAL = pa.float64()
_FLAG = pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")
_BOX = _struct(l=_REAL, t=_REAL, r=_REAL, b=_REAL)

_SOURCE_NAME = Column("source_name", _TEXT, "Name of the data set, the `source` partition.")
_SOURCE_URI = Column("source_uri", _TEXT, "Address of the source, without credentials or query.")
_SOURCE_ROW = Column("source_row", _LONG, "Position in the source, from 0, where it holds many documents.")
_SOURCE_STATE = (
    Column("source_version", _TEXT, "Generation or version id of the source."),
    Column("source_etag", _TEXT, "Entity tag of the source."),
    Column("source_size", _LONG, "Bytes of the source."),
    Column("source_modified_at", _TIME, "Last change of the source."),
)
_RUN_ID = Column("run_id", _TEXT, "Run that wrote the row.")
_CREATED_AT = Column("created_at", _TIME, "Logical time of that run, the same in all of its rows.")
_INPUT = (
    Column("input_uri", _TEXT, "File that held it, where that is not `source_uri`."),
    Column(
        "input_state", _TEXT, "Digest of what the store told of that file: size, version, tag, last change."
    ),
)
_CONTENT_DIGEST = Column("content_sha256", _TEXT, "SHA-256 of the document's source bytes.")
_CHUNKER_NAME = Column("chunker_name", _TEXT, "Strategy.")
_CHUNKER_HASH = Column("chunker_hash", _TEXT, "Fingerprint of the strategy with all of its settings.")
_MEDIA_TYPE = Column("media_type", _TEXT, "Media type of the document.")
_TITLE = Column("title", _TEXT, "Title of the document.")
_LANGUAGE = Column("language", _TEXT, "Language of the document, BCP 47.")
_PARSER = (
    Column("parser_name", _TEXT, "What turned the source's bytes into text."),
    Column("parser_version", _TEXT, "Version of that parser."),
)

CHUNK_COLUMNS = (
    Column("chunk_id", _TEXT, "Id of the chunk: the same in every run with the same text and chunker.", True),
    Column("document_id", _TEXT, "Id of the document.", True),
    Column("chunk_index", _INT, "Position among the chunks of the document, from 0.", True),
    Column("chunk_count", _INT, "Chunks of the document."),
    Column("text", _TEXT, "Text of the chunk.", True),
    Column("token_count", _INT, "Tokens of `text`."),
    Column("context", _TEXT, "Text to put before `text` when embedding: heading path, table header."),
    Column("start_char", _LONG, "Start of the span in the document's text, in code points."),
    Column("end_char", _LONG, "End of the half-open span, in code points."),
    Column("start_byte", _LONG, "Start of the span in the UTF-8 text, in bytes."),
    Column("end_byte", _LONG, "End of the half-open span, in bytes."),
    Column(
        "spans",
        _list(_struct(start=_LONG, end=_LONG)),
        "The pieces in code points, where the chunk is not one span.",
    ),
    Column("overlap_chars", _INT, "Leading characters that the chunk before holds too."),
    Column("line_start", _INT, "First line, from 1."),
    Column("line_end", _INT, "Last line."),
    Column("kind", _TEXT, "What the chunk is: `body`, `heading`, `table`, `code`, ..."),
    Column("heading_level", _INT, "Level of the heading, on heading chunks."),
    Column("headings", _list(_TEXT), "Headings in force at its start, outermost first."),
    Column("parent_id", _TEXT, "Chunk of the same document that this one stands under."),
    Column("page_start", _INT, "First page, from 1."),
    Column("page_end", _INT, "Last page."),
    Column(
        "locations",
        _list(_struct(page_number=_INT, bbox=_BOX)),
        "Pages and boxes that it touches.",
    ),
    Column("images", _list(_TEXT), "References to its images."),
    Column("is_derived", _FLAG, "Whether `text` is made from the span rather than cut from it."),
    Column("over_budget", _FLAG, "Whether it is larger than the budget, as one indivisible unit."),
    _TITLE,
    _LANGUAGE,
    _MEDIA_TYPE,
    Column("license", _TEXT, "Licence of the document, SPDX."),
    Column("acl_labels", _list(_TEXT), "Labels of those who may read the document."),
    Column("tenant_id", _TEXT, "Owner of the document."),
    Column("metadata", _TEXT, "Further facts about the document, canonical JSON."),
    _SOURCE_NAME,
    _SOURCE_URI,
    *_SOURCE_STATE,
    _CONTENT_DIGEST,
    *_PARSER,
    _CHUNKER_NAME,
    Column("chunker_version", _INT, "Version of the strategy's algorithm."),
    _CHUNKER_HASH,
    Column("tokenizer", _TEXT, "Tokenizer that counts the budget."),
    Column("pipeline_version", _TEXT, "Version of Chunkmill."),
    _RUN_ID,
    Column("job_id", _TEXT, "Name that the scheduler gave the job."),
    _CREATED_AT,
)

DOCUMENT_COLUMNS = (
    Column("document_id", _TEXT, "Id of the document; the address where none was reached.", True),
    _CHUNKER_NAME,
    _CHUNKER_HASH,
    _SOURCE_NAME,
    _SOURCE_URI,
    _SOURCE_ROW,
    *_SOURCE_STATE,
    _CONTENT_DIGEST,
    Column("text_sha256", _TEXT, "SHA-256 of the document's text in UTF-8."),
    _MEDIA_TYPE,
    _TITLE,
    _LANGUAGE,
    *_PARSER,
    Column("status", _TEXT, "`ok`, `blank`, `skipped`, `failed` or `deleted`.", True),
    Column("reason", _TEXT, "Why it has no chunks."),
    Column("chunk_count", _INT, "Its chunks."),
    Column("token_count", _LONG, "Tokens of all of its chunks."),
    Column("char_count", _LONG, "Code points of its text."),
    Column("byte_count", _LONG, "Bytes of its text in UTF-8."),
    Column("lost_chars", _LONG, "Characters, white space apart, that no chunk holds."),
    Column("coverage", _REAL, "Share of its characters that are not lost."),
    Column("over_budget_count", _INT, "Chunks larger than the budget."),
    _RUN_ID,
    _CREATED_AT,
    Column("text", _TEXT, "Its text, if the run was to keep it."),
    Column("notes", _TEXT, "What was done to it besides cutting, as JSON: name to how often."),
    Column("removed_chars", _LONG, "Characters, white space apart, that a setting left out of its chunks."),
    *_INPUT,
)

CHUNKER_COLUMNS = (
    Column("chunker_hash", _TEXT, "Fingerprint of the strategy with all of its settings.", True),
    Column("chunker_name", _TEXT, "Strategy.", True),
    Column("chunker_version", _INT, "Version of the strategy's algorithm."),
    Column("settings", _TEXT, "All settings, canonical JSON."),
    Column("tokenizer", _TEXT, "Tokenizer that counts the budget."),
    Column("vocabulary_digest", _TEXT, "SHA-256 of the tokenizer's vocabulary."),
    Column("chunk_size", _INT, "Budget of a chunk, in tokens."),
    Column("first_seen", _TIME, "Logical time of the first run that used it."),
)

DEAD_LETTER_COLUMNS = (
    Column("document_id", _TEXT, "Id of the document; the address where none was reached.", True),
    Column("stage", _TEXT, "Where it failed: `read`, `parse`, `chunk` or `write`.", True),
    Column("reason", _TEXT, "Short code of the kind of fault.", True),
    Column("message", _TEXT, "What is wrong and what to do.", True),
    Column("documents", _LONG, "Documents lost with it."),
    _SOURCE_NAME,
    _SOURCE_URI,
    _SOURCE_ROW,
    *_SOURCE_STATE,
    _CONTENT_DIGEST,
    _MEDIA_TYPE,
    _RUN_ID,
    _CREATED_AT,
    *_INPUT,
)

ID_COLUMNS = (
    Column("chunk_id", _TEXT, "Id of the chunk that left or came.", True),
    Column("document_id", _TEXT, "Id of its document.", True),
    _RUN_ID,
    _CREATED_AT,
)


def _schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(c.name, c.type, nullable=not c.required) for c in columns])


CHUNKS = _schema(CHUNK_COLUMNS)
DOCUMENTS = _schema(DOCUMENT_COLUMNS)
CHUNKERS = _schema(CHUNKER_COLUMNS)
DEAD_LETTERS = _schema(DEAD_LETTER_COLUMNS)
IDS = _schema(ID_COLUMNS)

SCHEMAS = {
    "chunks": CHUNKS,
    "documents": DOCUMENTS,
    "dead_letters": DEAD_LETTERS,
    "deletes": IDS,
    "changes": IDS,
}


def fingerprint(schema: pa.Schema) -> str:
    """Digest of names, order, types and nullability, 16 hex digits."""
    lines = (f"{f.name}: {f.type}{'' if f.nullable else ' not null'}\n" for f in schema)
    return sha256("".join(lines).encode()).hexdigest()[:16]
