"""Rows of a table to documents, cell by cell: a batch may hold texts too large to be made Python objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, time
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa

from transforms.errors import ReadError
from transforms.records import Block, DeadLetter, RawDocument, Source
from transforms.sources.blocks import join_blocks
from transforms.sources.files import SourceFile, address_id
from transforms.sources.settings import ReadSettings
from transforms.storage import public_uri

Cells = Mapping[str, Any]
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
    held = {name: batch.column(column) for name, column in columns.items()}
    extra = {column: batch.column(column) for column in settings.metadata_columns}
    for at in range(batch.num_rows):
        cells = {name: cell for name, column in held.items() if (cell := _cell(column[at])) is not None}
        facts = {name: column[at] for name, column in extra.items()}
        yield _document(cells, facts, "document_id" in held, file, first + at, settings)


def _document(
    cells: Cells, facts: Cells, has_ids: bool, file: SourceFile, row: int, settings: ReadSettings
) -> RawDocument | DeadLetter:
    source = Source(settings.source_name, file.uri, row, file.version, file.etag, None, file.modified_at)
    document_id = file.uri
    media_type = settings.media_type
    try:
        document_id = _document_id(cells, has_ids, file, row)
        if uri := _text(cells, "uri"):
            source = Source(settings.source_name, public_uri(uri), row)
        payload = _payload(cells, settings)
        media_type = media_type or _text(cells, "media_type")
        if media_type is None and payload.is_text and not uri:
            media_type = "text/plain"
        source = replace(
            source,
            version=_text(cells, "version") or source.version,
            etag=_text(cells, "etag") or source.etag,
            size=_python(cells["size"], "size") if "size" in cells else payload.size,
            modified_at=_time(cells["modified_at"]) if "modified_at" in cells else source.modified_at,
            content_sha256=_text(cells, "content_sha256") or payload.sha256,
        )
        return RawDocument(
            document_id=document_id,
            content=payload.content,
            media_type=media_type,
            charset=payload.charset,
            blocks=payload.blocks,
            title=_text(cells, "title"),
            language=_text(cells, "language"),
            license=_text(cells, "license"),
            acl_labels=_labels(cells),
            tenant_id=_text(cells, "tenant_id"),
            metadata=_metadata(cells, facts),
            source=source,
        )
    except ReadError as error:
        message = f"{file.uri}, row {row}: {error.message}"
        return DeadLetter(document_id, "read", error.reason, message, source, 1, media_type)


class _Payload(NamedTuple):
    content: str | bytes
    charset: str | None
    blocks: tuple[Block, ...] | None
    size: int
    sha256: str
    is_text: bool


def _payload(cells: Cells, settings: ReadSettings) -> _Payload:
    if "blocks" in cells:
        _refuse_large(cells["blocks"].values.nbytes, settings)
        text, blocks = join_blocks(_python(cells["blocks"], "blocks"))
        data = text.encode()
        return _Payload(text, None, blocks, len(data), hashlib.sha256(data).hexdigest(), True)
    name = "text" if "text" in cells else "content"
    if name not in cells:
        raise ReadError("null_text", "text, content and blocks are null")
    cell = cells[name].value if isinstance(cells[name], pa.ExtensionScalar) else cells[name]
    buffer = cell.as_buffer()
    _refuse_large(buffer.size, settings)
    digest = hashlib.sha256(buffer).hexdigest()
    charset = settings.charset or ("utf-8" if name == "text" else None)
    try:
        content = cell.as_py()
    except UnicodeDecodeError:  # a string column that is none; the parser says what is wrong, or mends it
        content, charset = buffer.to_pybytes(), "utf-8"
    return _Payload(
        content, None if isinstance(content, str) else charset, None, buffer.size, digest, name == "text"
    )


def _refuse_large(size: int, settings: ReadSettings) -> None:
    if size > settings.max_document_bytes:
        limit = f"max_document_bytes is {settings.max_document_bytes}"
        raise ReadError("too_large", f"the document has {size} bytes; {limit}")


def _document_id(cells: Cells, has_ids: bool, file: SourceFile, row: int) -> str:
    if not has_ids:
        return address_id(file.uri, row)
    if found := _text(cells, "document_id"):
        return found
    raise ReadError("null_id", "the id is null or empty")


def _labels(cells: Cells) -> tuple[str, ...] | None:
    if "acl_labels" not in cells:
        return None
    labels = _python(cells["acl_labels"], "acl_labels")
    if None in labels:  # who may read it must never be guessed
        raise ReadError("null_acl_label", "acl_labels holds a null")
    return tuple(_decoded(label, "acl_labels") for label in labels)


def _metadata(cells: Cells, facts: Cells) -> dict[str, object]:
    found = _python(cells["metadata"], "metadata") if "metadata" in cells else {}
    try:
        if isinstance(found, (str, bytes)):
            found = json.loads(found)
            if not isinstance(found, dict):
                raise ReadError("bad_metadata", f"metadata is a JSON {type(found).__name__}, not an object")
        more = {
            name: None if (cell := _cell(fact)) is None else _python(cell, name)
            for name, fact in facts.items()
        }
        return {str(key): _json(value) for key, value in {**dict(found), **more}.items()}
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


def _time(cell: Any) -> int:
    """Microseconds since 1970."""
    value: int = cell.value if hasattr(cell, "value") else cell.as_py()
    if pa.types.is_date32(cell.type):
        return value * 86_400_000_000
    if pa.types.is_date64(cell.type):
        return value * 1_000
    unit = getattr(cell.type, "unit", "us")
    return value // 1_000 if unit == "ns" else value * _MICROSECONDS[unit]


def _text(cells: Cells, name: str) -> str | None:
    return _decoded(_python(cells[name], name), name) if name in cells else None


def _decoded(value: object, name: str) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise ReadError("not_text", f"{name} is not UTF-8: {error.reason} at byte {error.start}") from error


def _python(cell: Any, name: str) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError as error:
        raise ReadError("not_text", f"{name} is not UTF-8: {error.reason} at byte {error.start}") from error
    except (ValueError, OverflowError) as error:
        raise ReadError("bad_value", f"{name} cannot be read: {error}") from error


def _cell(cell: Any) -> Any:
    """The scalar, out of its dictionary if it has one; None if it is null."""
    if isinstance(cell, pa.DictionaryScalar):
        cell = cell.value
    return cell if cell.is_valid else None
