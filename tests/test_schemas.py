"""The schemas are a promise to every reader of every table that was ever written."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from transforms import schemas
from transforms.schemas import CHUNKERS, CHUNKS, DEAD_LETTERS, DOCUMENTS, IDS, fingerprint

PINNED = {
    "CHUNKS": "008a3d8c5aab409b",
    "DOCUMENTS": "315e0fa711d9cf6e",
    "CHUNKERS": "5bf1973462a4381b",
    "DEAD_LETTERS": "f41be1b0c4c2ebfd",
    "IDS": "b5c7378f135d6061",
}
COLUMNS = {
    "CHUNKS": schemas.CHUNK_COLUMNS,
    "DOCUMENTS": schemas.DOCUMENT_COLUMNS,
    "CHUNKERS": schemas.CHUNKER_COLUMNS,
    "DEAD_LETTERS": schemas.DEAD_LETTER_COLUMNS,
    "IDS": schemas.ID_COLUMNS,
}


@pytest.mark.parametrize("name", PINNED)
def test_a_schema_never_changes(name: str) -> None:
    assert fingerprint(getattr(schemas, name)) == PINNED[name], "new columns are nullable and go at the end"


def test_chunks_have_the_columns_of_the_design_in_its_order() -> None:
    assert " ".join(CHUNKS.names) == (
        "chunk_id document_id chunk_index chunk_count text token_count context start_char end_char "
        "start_byte end_byte spans overlap_chars line_start line_end kind heading_level headings parent_id "
        "page_start page_end locations images is_derived over_budget title language media_type license "
        "acl_labels tenant_id metadata source_name source_uri source_version source_etag source_size "
        "source_modified_at content_sha256 parser_name parser_version chunker_name chunker_version "
        "chunker_hash tokenizer pipeline_version run_id job_id created_at"
    )


def test_only_what_identifies_a_row_is_required() -> None:
    def required(schema: pa.Schema) -> list[str]:
        return [field.name for field in schema if not field.nullable]

    assert required(CHUNKS) == ["chunk_id", "document_id", "chunk_index", "text"]
    assert required(DOCUMENTS) == ["document_id", "status"]
    assert required(CHUNKERS) == ["chunker_hash", "chunker_name"]
    assert required(IDS) == ["chunk_id", "document_id"]
    assert required(DEAD_LETTERS) == ["document_id", "stage", "reason", "message"]


def leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    if pa.types.is_list(kind):
        yield from leaves(kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type)
    else:
        yield kind


@pytest.mark.parametrize("name", PINNED)
def test_every_type_is_one_that_all_readers_know(name: str) -> None:
    known = {pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us", "UTC")}
    assert {leaf for field in getattr(schemas, name) for leaf in leaves(field.type)} <= known


@pytest.mark.parametrize("name", PINNED)
def test_every_column_is_described(name: str) -> None:
    assert [column.name for column in COLUMNS[name]] == getattr(schemas, name).names
    assert all(column.description.endswith((".", "...")) for column in COLUMNS[name])


@pytest.mark.parametrize("name", PINNED)
def test_no_column_is_named_like_a_key_of_the_path(name: str) -> None:
    assert not {"chunker", "source"} & set(getattr(schemas, name).names)


def test_a_fingerprint_tells_name_type_order_and_nullability() -> None:
    a, b = pa.field("a", pa.int32()), pa.field("b", pa.string())
    variants = [
        [a, b],
        [b, a],
        [a],
        [a.with_name("c"), b],
        [a.with_type(pa.int64()), b],
        [a.with_nullable(False), b],
        [pa.field("a", pa.list_(pa.field("element", pa.int32(), False))), b],
        [pa.field("a", pa.list_(pa.field("element", pa.int32()))), b],
    ]
    assert len({fingerprint(pa.schema(fields)) for fields in variants}) == len(variants)
