"""The rows of a shard on their way to its files: which of the documents stand, and what is told of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.packs import PACKS, chunker_json
from transforms.paths import chunker_value, record_of
from transforms.provenance import ChunkerRecord, Run, pipeline_version
from transforms.schemas import CHUNKS, SCHEMAS

DUPLICATE = "duplicate_document_id"
RETIRED = "retired"

SIGNATURE = pa.schema(
    [
        ("pipeline_version", pa.large_string()),
        ("run_id", pa.large_string()),
        ("job_id", pa.large_string()),
        ("created_at", CHUNKS.field("created_at").type),
        ("kept", pa.bool_()),
    ]
)
_OF_DOCUMENT = [name for name in CHUNKS.names if name in PACKS["documents"].names]
SHARED = [name for name in _OF_DOCUMENT if name not in PACKS["chunks"].names]
"""What all chunks of a document have in common."""


def columns_of(*names: str) -> pa.Schema:
    """The schema of some columns of rows that are on their way to a file."""
    known = {f.name: f for schema in (SIGNATURE, *PACKS.values()) for f in schema}
    return pa.schema([known[name] for name in names])


_BY_CHUNKER = ("chunker_name", "chunker_hash")
LEDGER = columns_of(
    *(name for name in SCHEMAS["documents"].names if name not in _BY_CHUNKER), "claim", "chunker", "kept"
)
LETTERS = columns_of(*SCHEMAS["dead_letters"].names, "chunker", "kept")
SHARED_BY_CHUNKS = columns_of(*SHARED, *SIGNATURE.names, "source_row", "claim", "chunker")
PLACE = ("document_id", "source_uri", "source_row")


def sort_by(rows: pa.Table, *names: str) -> pa.Table:
    """The rows in ascending order of some columns."""
    return rows.sort_by([(name, "ascending") for name in names])


def gathered(rows: pa.Table, order: npt.NDArray[np.int64], parted: str) -> pa.Table:
    """Some of the rows in an order, where the values of one column lie in parts.

    The values wanted of it are copied once, run by run, whereas `take` would first make one array of all parts.

    Args:
        rows: The rows.
        order: Positions of those wanted.
        parted: The column.
    """
    parts = rows[parted].chunks
    edges = np.cumsum([0, *map(len, parts)])
    part: Any = np.searchsorted(edges, order, "right") - 1
    starts = np.flatnonzero((np.diff(order, prepend=-2) != 1) | (np.diff(part, prepend=-1) != 0))
    lengths = np.diff(starts, append=len(order))
    runs = zip(part[starts], (order - edges[part])[starts], lengths, strict=True)
    values = pa.concat_arrays([parts[part].slice(start, length) for part, start, length in runs])
    others = rows.drop_columns([parted]).take(order)
    return others.add_column(rows.column_names.index(parted), rows.schema.field(parted), values)


def resolve(documents: pa.Table, taken: Mapping[tuple[str, str], str]) -> pa.Table:
    """The documents in the order of their claims, with `refused`: why one does not stand, or null."""
    documents = sort_by(documents, *PLACE, "chunker", "claim")
    refused = dict(chain(_claimed_twice(documents), _held_by_table(documents, taken)))
    reasons = [refused.get(position) for position in range(len(documents))]
    return documents.append_column("refused", pa.array(reasons, pa.large_string()))


def _held_by_table(documents: pa.Table, taken: Mapping[tuple[str, str], str]) -> Iterator[tuple[int, str]]:
    """Positions of the documents whose id the table holds already, and why they are refused."""
    if not taken:
        return
    claims = zip(documents["chunker"].to_pylist(), documents["document_id"].to_pylist(), strict=True)
    for position, (chunker, document_id) in enumerate(claims):
        value = chunker_value(record_of(chunker)) if chunker else ""
        if (place := taken.get((value, str(document_id)))) is not None:
            yield (
                position,
                f"the table holds a document from {place} by the id {document_id!r}; give every document an id of "
                "its own, or overwrite the table",
            )


def _claimed_twice(documents: pa.Table) -> Iterator[tuple[int, str]]:
    """Positions of the documents whose id another one has, which comes first, and why they are refused."""
    if pc.count_distinct(documents["document_id"]).as_py() == len(documents):
        return
    claims = (documents[name].to_pylist() for name in (*PLACE, "chunker"))
    for document_id, group in groupby(enumerate(zip(*claims, strict=True)), key=lambda claim: claim[1][0]):
        first, seen = None, set()
        for position, (_, uri, row, chunker) in group:
            first = first or (uri, row)
            if (uri, row) != first or chunker in seen:
                yield position, _refusal(document_id, *first)
            seen.add(chunker)


def _refusal(document_id: str, uri: str | None, row: int | None) -> str:
    place = ", ".join([*([uri] if uri else []), *([] if row is None else [f"row {row}"])])
    other = f"another document ({place})" if place else "another document"
    return f"the id {document_id!r} is taken by {other}; give every document an id of its own"


def filed_letters(letters: pa.Table, chunker: ChunkerRecord | None) -> pa.Table:
    """The dead letters in a fixed order, under the chunker that would have cut their documents."""
    value = chunker_json(chunker) if chunker else None
    column = constant(value, pa.large_string(), len(letters))
    return sort_by(letters, *letters.column_names).append_column("chunker", column)


def ledger_of(standing: pa.Table, refused: pa.Table, letters: pa.Table) -> pa.Table:
    """The rows of the ledger for all documents that came."""
    failure = {"status": "failed", "chunk_count": 0, "token_count": 0, "over_budget_count": 0}
    refused = with_values(
        refused,
        standing.schema,
        reason=DUPLICATE,
        lost_chars=None,
        removed_chars=None,
        coverage=None,
        **failure,
    )
    letters = with_values(letters.drop_columns(["stage", "message", "documents"]), standing.schema, **failure)
    return pa.concat_tables([standing, refused, letters], promote_options="default")


def dead_letters_of(refused: pa.Table, letters: pa.Table) -> pa.Table:
    """The dead letters, and one for each document that was refused."""
    shared = refused.select([name for name in letters.column_names if name in refused.column_names])
    shared = with_values(shared, letters.schema, stage="write", reason=DUPLICATE, documents=1)
    shared = shared.append_column("message", refused["refused"])
    return pa.concat_tables([letters, shared.select(letters.column_names)])


def absent(rows: pa.Table, standing: pa.Table) -> pa.Table:
    """Those of `rows` whose document did not come again, by the same chunker."""
    if not len(rows):
        return rows
    present = np.zeros(len(rows), bool)
    for chunker in pc.unique(rows["chunker"]):
        here = standing["document_id"].filter(pc.equal(standing["chunker"], chunker)).combine_chunks()
        again = pc.and_(pc.equal(rows["chunker"], chunker), pc.is_in(rows["document_id"], here))
        present |= again.to_numpy()
    return rows.filter(~present)


_OF_TEXT = ("char_count", "byte_count", "lost_chars", "removed_chars", "coverage", "text", "notes")


def deleted_of(gone: pa.Table) -> pa.Table:
    """The rows of the ledger of documents that are gone, as those of deleted ones."""
    counts = dict.fromkeys(("chunk_count", "token_count", "over_budget_count"), 0)
    return with_values(
        gone, gone.schema, status="deleted", reason=RETIRED, **counts, **dict.fromkeys(_OF_TEXT)
    )


def joined(rows: pa.Table, *more: pa.Table) -> pa.Table:
    """Rows with more of them, where there are any."""
    tables = [rows, *(table for table in more if len(table))]
    return pa.concat_tables(tables, promote_options="default") if len(tables) > 1 else rows


def signed(rows: pa.Table, run: Run) -> pa.Table:
    """Rows that `run` writes anew."""
    return with_values(
        rows,
        SIGNATURE,
        pipeline_version=pipeline_version(),
        run_id=run.run_id,
        job_id=run.job_id,
        created_at=run.created_at,
        kept=False,
    )


def with_values(rows: pa.Table, schema: pa.Schema, **values: object) -> pa.Table:
    """`rows` with the same value in each of them, for every name of `values`."""
    for name, value in values.items():
        kept = rows.drop_columns([name]) if name in rows.column_names else rows
        rows = kept.append_column(name, constant(value, schema.field(name).type, len(rows)))
    return rows


def constant(value: object, kind: pa.DataType, rows: int) -> pa.Array[Any]:
    """A column with the same value in each row."""
    scalar: Any = pa.scalar(value, kind)
    column: pa.Array[Any] = pa.repeat(scalar, rows)
    return column


def columns(rows: pa.Table) -> dict[str, pa.ChunkedArray[Any]]:
    """The columns of rows by name."""
    return dict(zip(rows.column_names, rows.columns, strict=True))
