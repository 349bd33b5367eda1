"""What a table of documents may hold, and of which types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyarrow import types


def is_text(type_: pa.DataType) -> bool:
    """Whether values of the type are characters or bytes."""
    if isinstance(type_, pa.DictionaryType):
        return is_text(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return is_text(type_.storage_type)
    tests = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(types, f"is_{test}")(type_) for test in tests)


def _is_key(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.DictionaryType):
        return _is_key(type_.value_type)
    return is_text(type_) or bool(types.is_integer(type_)) or str(type_) == "extension<arrow.uuid>"


def _is_time(type_: pa.DataType) -> bool:
    return any(is_(type_) for is_ in (types.is_timestamp, types.is_date, types.is_integer))


def _is_metadata(type_: pa.DataType) -> bool:
    return is_text(type_) or isinstance(type_, (pa.MapType, pa.StructType))


def _is_labels(type_: pa.DataType) -> bool:
    return isinstance(type_, (pa.ListType, pa.LargeListType)) and is_text(type_.value_type)


def _is_blocks(type_: pa.DataType) -> bool:
    if not isinstance(type_, (pa.ListType, pa.LargeListType)):
        return False
    block = type_.value_type
    return isinstance(block, pa.StructType) and any(f.name == "text" and is_text(f.type) for f in block)


_TEXT = (is_text, "a string or binary column")
_KEY = (_is_key, "a string or integer column")
COLUMNS: Mapping[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "document_id": _KEY,
    "uri": _TEXT,
    "text": _TEXT,
    "content": _TEXT,
    "blocks": (_is_blocks, "a list of structs with a text field"),
    "media_type": _TEXT,
    "title": _TEXT,
    "language": _TEXT,
    "license": _TEXT,
    "acl_labels": (_is_labels, "a list of strings"),
    "tenant_id": _KEY,
    "metadata": (_is_metadata, "a JSON string, a map or a struct"),
    "version": _KEY,
    "etag": _TEXT,
    "size": (types.is_integer, "an integer column"),
    "modified_at": (_is_time, "a timestamp, a date, or integer microseconds"),
    "content_sha256": _TEXT,
}
"""What a table of documents may hold: for each name a test of the column's type, and the test in words."""
