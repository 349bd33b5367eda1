"""What a table holds of one shard, and how much of it a run leaves as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.incremental import file_names, read_retired
from transforms.packs import PACKS
from transforms.parquet_files import chunker_in
from transforms.partitions import folder_values
from transforms.paths import FileEntry, slug
from transforms.provenance import Run
from transforms.records import ABSENT
from transforms.rows import LEDGER, LETTERS, SHARED_BY_CHUNKS
from transforms.shards import Kept
from transforms.table import Store, Table

_BATCH_ROWS = 4096


def kept_rows(output: str, run: Run, shard: int) -> Kept:
    """What a run keeps of a shard.

    Args:
        output: Root of the table.
        run: The run.
        shard: The shard.

    Raises:
        CommitError: If the list of what the run retires is gone.
    """
    if run.mode == "overwrite" and run.source_name is None:
        return Kept()  # what is replaced is known only when all of it has been written
    store = Store(output, run.run_id)
    table = _base(output, run.run_id, run.increment.base) if run.increment else Table(output)
    files = sorted(
        (entry for entry in table.files.values() if entry.shard == shard), key=lambda entry: entry.path
    )
    covered = run.increment.partitions if run.increment else ()
    taken = _taken(store, [entry for entry in files if entry.partition not in covered], run)
    if not run.increment:
        return Kept(taken)
    retired = pa.array(read_retired(output, run, shard), pa.large_string())
    return _kept(store, [entry for entry in files if entry.partition in covered], covered, taken, retired)


@lru_cache(maxsize=4)
def _base(output: str, run_id: str, seq: int) -> Table:
    """The table that a run was planned on; the writers of all shards ask for it, and it stays what it was."""
    return Table(output, seq)


def _taken(store: Store, files: Sequence[FileEntry], run: Run) -> dict[tuple[str, str], str]:
    """Addresses of the documents that stay in some files of a shard, by chunker value and document id."""
    taken: dict[tuple[str, str], str] = {}
    columns = ("document_id", "source_uri", "status", "run_id")
    for entry in files:
        replaced = run.mode == "overwrite" and entry.partition.endswith(f"/source={slug(run.source_name)}")
        if entry.kind != "documents" or replaced:
            continue
        chunker = folder_values(entry.partition)["chunker"]
        with store.opened_data(entry.path) as file:
            rows = pq.read_table(file, columns=list(columns), partitioning=None)
        for document_id, uri, status, run_id in zip(
            *(rows[name].to_pylist() for name in columns), strict=True
        ):
            # What the same run appended before is what it is about to write again.
            again = not run.increment and run_id == run.run_id
            if status not in ABSENT and not again:
                taken[chunker, document_id] = uri
    return taken


def _kept(
    store: Store,
    files: Sequence[FileEntry],
    partitions: Sequence[str],
    taken: dict[tuple[str, str], str],
    retired: pa.Array[Any],
) -> Kept:
    """What is left of some files of a shard without the rows of retired sources."""
    ledger = _rows(store, files, "documents", LEDGER)
    letters = _rows(store, files, "dead_letters", LETTERS)
    goes = _is_of(ledger, retired)
    stands = pc.invert(pc.is_in(ledger["status"], pa.array(ABSENT, pa.large_string())))
    deleted = pc.equal(ledger["status"], pa.scalar("deleted", pa.large_string()))
    gone = ledger.filter(pc.and_(stands, goes))
    stays = ledger.filter(pc.and_(stands, pc.invert(goes)))
    chunkers = [folder_values(partition)["chunker"] for partition in partitions]
    # One id is one document, whichever of the run's chunkers cut it.
    for document_id, uri in zip(
        *(stays[name].to_pylist() for name in ("document_id", "source_uri")), strict=True
    ):
        taken.update({(chunker, document_id): uri for chunker in chunkers})
    return Kept(
        taken=taken,
        chunks=_chunks(store, files, gone),
        shared=_shared(store, files, gone),
        documents=ledger.filter(pc.invert(pc.or_(goes, deleted))),
        dead_letters=letters.filter(pc.invert(_is_of(letters, retired))),
        gone=gone,
        deleted=ledger.filter(deleted),
    )


def _is_of(rows: pa.Table, retired: pa.Array[Any]) -> Any:
    return pc.is_in(file_names(rows), retired)


def _rows(store: Store, files: Sequence[FileEntry], kind: str, schema: pa.Schema) -> pa.Table:
    """All rows of a kind."""
    held = [batch for entry in files if entry.kind == kind for batch in _batches(store, entry, schema)]
    return pa.Table.from_batches(held, schema)


def _chunks(store: Store, files: Sequence[FileEntry], gone: pa.Table) -> Iterator[pa.RecordBatch]:
    """The chunks of the documents that are not gone, as packs have them."""
    schema = PACKS["chunks"]
    for entry in files:
        if entry.kind == "chunks":
            for batch in _batches(store, entry, schema.append(SHARED_BY_CHUNKS.field("document_id"))):
                yield _without(batch, gone).select(schema.names)


def _shared(store: Store, files: Sequence[FileEntry], gone: pa.Table) -> pa.Table:
    """What the chunks of each document that is not gone have in common."""
    held = []
    for entry in files:
        if entry.kind == "chunks":
            for batch in _batches(store, entry, SHARED_BY_CHUNKS):
                # Once is enough, and twice, where a document goes on in the next batch, does no harm.
                _, first = np.unique(batch["claim"].dictionary_encode().indices, return_index=True)
                held.append(_without(batch.take(first), gone))
    return pa.Table.from_batches(held, SHARED_BY_CHUNKS)


def _without(batch: pa.RecordBatch, gone: pa.Table) -> pa.RecordBatch:
    """The rows of documents that are not among those gone from the same partition."""
    return batch.filter(pc.invert(pc.is_in(batch["claim"], gone["claim"].combine_chunks())))


def _batches(store: Store, entry: FileEntry, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file in other columns; `claim`, `chunker` and `kept` are made, and what is missing is null."""
    with store.opened_data(entry.path) as file:
        parquet = pq.ParquetFile(file)
        chunker = chunker_in(parquet.schema_arrow)
        columns = ["document_id", *(name for name in schema.names if name in parquet.schema_arrow.names)]
        for batch in parquet.iter_batches(
            _BATCH_ROWS, columns=list(dict.fromkeys(columns)), use_threads=False
        ):
            made = {
                "claim": _claims(batch["document_id"], entry.partition),
                "chunker": pa.array([chunker] * len(batch), pa.large_string()),
                "kept": pa.array([True] * len(batch)),
            }
            given = {name: batch[name] for name in batch.schema.names}
            held = {**{f.name: pa.nulls(len(batch), f.type) for f in schema}, **given, **made}
            yield pa.record_batch([held[f.name].cast(f.type) for f in schema], schema=schema)


def _claims(ids: pa.Array[Any], partition: str) -> pa.Array[Any]:
    """What joins chunks to their document; no claim of a pack is made in this way."""
    encoded = ids.dictionary_encode()
    claims = [
        sha256(f"{partition}\n{value}".encode()).digest()[:16] for value in encoded.dictionary.to_pylist()
    ]
    return pa.array(claims, pa.binary(16)).take(encoded.indices)
