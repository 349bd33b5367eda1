"""Rows of a table to documents.

Texts stay in Arrow until their size is known: a batch may hold some too large to be made Python objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date, time
from itertools import repeat
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa

from transforms.errors import ReadError
from transforms.fingerprint import digest_of
from transforms.records import Block, DeadLetter, RawDocument, Source
from transforms.sources.blocks import join_blocks
from transforms.sources.files import SourceFile, address_id
from transforms.sources.settings import ReadSettings
from transforms.storage import public_uri

# A value, or the error to raise if it is asked for; of these columns the scalar, which is made a value late.
Row = Mapping[str, Any]
_LATE = frozenset({"text", "content", "blocks", "modified_at"})
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def documents(
    batch: pa.RecordBatch, columns: Mapping[str, str], file: SourceFile, first: int, settings: ReadSettings
) -> Iterator[RawDocument | DeadLetter]:
    """The documents of `batch`, whose first row is row `first` of `file`.

    Args:
        batch: Rows.
        columns: Columns of the batch, by the name of what they hold.
        file: Where the rows come from.
        first: Position of the first row in the file, from 0.
        settings: How to read.
    """
    held = {name: _cells(batch.column(column), name) for name, column in columns.items()}
    extra = {column: _cells(batch.column(column), column) for column in settings.metadata_columns}
    rows = _rows(held, batch.num_rows)
    facts = _rows(extra, batch.num_rows)
    state = file.state
    for position, (row, known) in enumerate(zip(rows, facts, strict=True), first):
        yield _document(row, known, file, state, position, settings)


def _rows(columns: Mapping[str, Any], count: int) -> Iterator[Row]:
    cells = zip(*columns.values(), strict=True) if columns else repeat((), count)
    return (dict(zip(columns, values, strict=True)) for values in cells)


def _cells(column: pa.Array[Any], name: str) -> Any:
    if name in _LATE:
        return column
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(cell, name) for cell in column]


def _value(cell: Any, name: str) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        return _not_text(name, error)
    except (ValueError, OverflowError) as error:
        return ReadError("bad_value", f"{name} cannot be read: {error}")


def _not_text(name: str, error: UnicodeDecodeError) -> ReadError:
    return ReadError("not_text", f"{name} is not UTF-8: {error.reason} at byte {error.start}")


def _document(
    row: Row, facts: Row, file: SourceFile, state: str | None, position: int, settings: ReadSettings
) -> RawDocument | DeadLetter:
    document_id = file.uri
    uri: str | None = None
    input_uri: str | None = None
    media_type = settings.media_type
    try:
        document_id = _document_id(row, file, position)
        if uri := _text(row, "uri"):
            # Without a scheme it is whatever the table means by it, no path on this machine.
            uri = public_uri(uri) if "://" in uri else uri
            input_uri = file.uri
        payload = _payload(row, settings)
        media_type = media_type or _text(row, "media_type")
        if media_type is None and payload.is_text and not uri:
            media_type = "text/plain"
        told = _text(row, "content_sha256")
        digest = None if told else digest_of(payload.data)
        document = RawDocument(
            document_id=document_id,
            content=payload.content,
            media_type=media_type,
            charset=payload.charset,
            blocks=payload.blocks,
            title=_text(row, "title"),
            language=_text(row, "language"),
            license=_text(row, "license"),
            acl_labels=_labels(row),
            tenant_id=_text(row, "tenant_id"),
            metadata=_metadata(row, facts),
            source=Source(
                name=settings.source_name,
                uri=uri or file.uri,
                row=position,
                version=_text(row, "version") or (None if uri else file.version),
                etag=_text(row, "etag") or (None if uri else file.etag),
                size=len(payload.data) if row.get("size") is None else row["size"],
                modified_at=_time(row, None if uri else file.modified_at),
                content_sha256=digest.sha256 if digest else told,
                input_uri=input_uri,
                input_state=state,
            ),
        )
        document.digest = digest
        return document
    except ReadError as error:
        message = f"{file.uri}, row {position}: {error.message}"
        where = (settings.source_name, uri or file.uri, position)
        source = Source(*where, input_uri=input_uri, input_state=state)
        return DeadLetter(document_id, "read", error.reason, message, source, 1, media_type)


class _Payload(NamedTuple):
    content: str | bytes
    charset: str | None
    blocks: tuple[Block, ...] | None
    data: Any
    is_text: bool


def _payload(row: Row, settings: ReadSettings) -> _Payload:
    name, cell, blocks = "text", _scalar(row, "text"), _scalar(row, "blocks")
    if cell is None:
        name, cell = "content", _scalar(row, "content")
    if blocks is not None and (len(blocks) or cell is None):
        _refuse_large(blocks.values.nbytes, settings)
        text, spans = join_blocks(_asked(_value(blocks, "blocks")))
        return _Payload(text, None, spans, text.encode(), True)
    if cell is None:
        raise ReadError("null_text", "text, content and blocks are null")
    buffer = cell.as_buffer()
    _refuse_large(buffer.size, settings)
    charset = settings.charset or ("utf-8" if name == "text" else None)
    try:
        content = cell.as_py()
    except UnicodeDecodeError:  # a string column that is none; the parser says what is wrong, or mends it
        content, charset = buffer.to_pybytes(), "utf-8"
    charset = None if isinstance(content, str) else charset
    return _Payload(content, charset, None, buffer, name == "text")


def _scalar(row: Row, name: str) -> Any:
    """The scalar itself, out of its dictionary or extension; None if it is null or there is none."""
    cell = row.get(name)
    if isinstance(cell, (pa.DictionaryScalar, pa.ExtensionScalar)):
        cell = cell.value
    return cell if cell is not None and cell.is_valid else None


def _refuse_large(size: int, settings: ReadSettings) -> None:
    if size > settings.max_document_bytes:
        limit = f"max_document_bytes is {settings.max_document_bytes}"
        raise ReadError("too_large", f"the document has {size} bytes; {limit}")


def _document_id(row: Row, file: SourceFile, position: int) -> str:
    if "document_id" not in row:
        return address_id(file.uri, position)
    if found := _text(row, "document_id"):
        return found
    raise ReadError("null_id", "the id is null or empty")


def _labels(row: Row) -> tuple[str, ...] | None:
    labels = _asked(row.get("acl_labels"))
    if labels is None:
        return None
    if None in labels:  # who may read it must never be guessed
        raise ReadError("null_acl_label", "acl_labels holds a null")
    return tuple(_decoded(label, "acl_labels") for label in labels)


def _metadata(row: Row, facts: Row) -> dict[str, object]:
    found = _asked(row.get("metadata")) or {}
    if not (found or facts):
        return {}
    try:
        if isinstance(found, (str, bytes)):
            found = json.loads(found)
            if not isinstance(found, dict):
                raise ReadError("bad_metadata", f"metadata is a JSON {type(found).__name__}, not an object")
        known = {**dict(found), **{name: _asked(fact) for name, fact in facts.items()}}
        return {str(_json(key)): _json(value) for key, value in known.items()}
    except (ValueError, RecursionError) as error:
        raise ReadError("bad_metadata", f"metadata cannot be read: {error}") from error


def _json(value: object) -> object:
    """The value as JSON can hold it."""
    if isinstance(value, str):
        # An escape in JSON can make half a surrogate pair, which no column can store.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(_json(key)): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return value if value is None or isinstance(value, int) else str(value)


def _time(row: Row, otherwise: int | None) -> int | None:
    """When the document changed, in microseconds since 1970."""
    cell = _scalar(row, "modified_at")
    if cell is None:
        return otherwise
    value: int = cell.value if hasattr(cell, "value") else cell.as_py()
    if pa.types.is_date32(cell.type):
        return value * 86_400_000_000
    if pa.types.is_date64(cell.type):
        return value * 1_000
    unit = getattr(cell.type, "unit", "us")
    return value // 1_000 if unit == "ns" else value * _MICROSECONDS[unit]


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return value if value is None or isinstance(value, str) else _decoded(_asked(value), name)


def _asked(value: Any) -> Any:
    if isinstance(value, ReadError):
        raise value
    return value


def _decoded(value: object, name: str) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise _not_text(name, error) from error
