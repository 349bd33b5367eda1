"""One shard, from packs to staged Parquet files whose bytes depend on the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.packs import chunker_json, read_packs
from transforms.parquet_files import (
    STANDARD,
    Ints,
    Layout,
    ParquetFile,
    Sink,
    in_schema,
    row_groups,
    weights_of,
)
from transforms.partitions import check_counts, partition_values
from transforms.paths import FileEntry, Kind, partition_path, prepare, staging
from transforms.provenance import ChunkerRecord, Run
from transforms.rows import (
    LEDGER,
    LETTERS,
    PLACE,
    SHARED,
    SHARED_BY_CHUNKS,
    SIGNATURE,
    absent,
    columns,
    columns_of,
    dead_letters_of,
    deleted_of,
    filed_letters,
    gathered,
    joined,
    ledger_of,
    resolve,
    signed,
    sort_by,
    with_values,
)
from transforms.storage import filesystem


@dataclass(frozen=True, slots=True)
class Kept:
    """What a table holds of a shard, and a run leaves as it is.

    Args:
        taken: Addresses of the documents that stay, by chunker value and document id.
        chunks: The chunks that have to be written again beside the new ones, as packs have them; read once.
        shared: What the chunks of each of their documents have in common.
        documents: Rows of the ledger that have to be written again.
        dead_letters: Dead letters that have to be written again.
        gone: Rows of the ledger of documents whose source is retired.
        deleted: Rows of the ledger of documents that were gone before.
    """

    taken: Mapping[tuple[str, str], str] = field(default_factory=dict)
    chunks: Iterable[pa.RecordBatch] = ()
    shared: pa.Table = field(default_factory=SHARED_BY_CHUNKS.empty_table)
    documents: pa.Table = field(default_factory=LEDGER.empty_table)
    dead_letters: pa.Table = field(default_factory=LETTERS.empty_table)
    gone: pa.Table = field(default_factory=LEDGER.empty_table)
    deleted: pa.Table = field(default_factory=LEDGER.empty_table)


def write_shard(
    shard: int,
    packs: Iterable[bytes | pa.Buffer],
    run: Run,
    output: str,
    default_chunker: ChunkerRecord | None = None,
    layout: Layout = STANDARD,
    kept: Kept | None = None,
) -> list[FileEntry]:
    """Merge the packs of one shard and stage its files.

    Of several documents with one id, the one that the table holds stands, else the first by source URI and
    row. Each of the others becomes a dead letter and a `failed` row of the ledger.

    Args:
        shard: Number of the shard.
        packs: All packs of the shard, in any order.
        run: The run.
        output: Root of the table.
        default_chunker: Chunker by which documents are filed that no chunker saw.
        layout: How files are cut and encoded.
        kept: What the table holds of the shard and is to stay.
    """
    kept = kept or Kept()
    rows = read_packs(packs, kept.chunks)
    documents = resolve(rows["documents"], kept.taken)
    letters = filed_letters(rows["dead_letters"], default_chunker)
    standing = documents.filter(pc.is_null(documents["refused"]))
    refused = documents.filter(pc.is_valid(documents["refused"]))

    writer = _ShardWriter(shard, run, output, layout)
    gone, deleted = deleted_of(absent(kept.gone, standing)), absent(kept.deleted, standing)
    ledger = signed(joined(ledger_of(standing, refused, letters), gone), run)
    failed = signed(dead_letters_of(refused, letters), run)
    return [
        *writer.write_chunks(rows["chunks"], joined(signed(standing, run), kept.shared)),
        *writer.write("documents", joined(ledger, kept.documents, deleted)),
        *writer.write("dead_letters", joined(failed, kept.dead_letters)),
    ]


def write_empty(run: Run, output: str, chunker: ChunkerRecord | None, layout: Layout = STANDARD) -> FileEntry:
    """Stage a chunk file without rows, by which readers of an empty table find its schema."""
    return _ShardWriter(0, run, output, layout).write_empty(chunker_json(chunker) if chunker else None)


def write_ids(
    kind: Kind, shard: int, run: Run, output: str, partition: str, chunker: str | None, ids: pa.Table
) -> Iterator[FileEntry]:
    """Stage the ids of chunks that left or came, with those of their documents.

    Args:
        kind: `deletes` or `changes`.
        shard: Number of the shard.
        run: The run.
        output: Root of the table.
        partition: Their partition, `chunker=.../source=...`.
        chunker: Its chunker, as canonical JSON.
        ids: The ids.
    """
    # Plain encodings, since every reader of the table has to know them, and ids do not get smaller by others.
    layout = Layout(profile="compat")
    yield from _ShardWriter(shard, run, output, layout).write_ids(kind, partition, chunker, ids)


def write_rows(
    kind: Kind,
    shard: int,
    folder: str,
    chunker: str | None,
    rows: pa.Table,
    order: Ints,
    run: Run,
    output: str,
    layout: Layout = STANDARD,
) -> Iterator[FileEntry]:
    """Stage rows that the table has already as files of one shard in one folder.

    Args:
        kind: The table they belong to.
        shard: Number of the shard.
        folder: The folder, below that of the kind.
        chunker: Its chunker, as canonical JSON.
        rows: The rows, with all columns of their kind, in one array for each.
        order: Their positions, in the order of the files.
        run: The run.
        output: Root of the table.
        layout: How files are cut and encoded.
    """
    yield from _ShardWriter(shard, run, output, layout).write_rows(kind, folder, chunker, rows, order)


class _ShardWriter:
    """Writes the rows of one shard to staged files.

    Args:
        shard: Number of the shard.
        run: The run.
        output: Root of the table.
        layout: How files are cut and encoded.
    """

    def __init__(self, shard: int, run: Run, output: str, layout: Layout) -> None:
        self._shard = shard
        self._run = run
        self._layout = layout
        self._fs, root = filesystem(output)
        self._root = root.rstrip("/")

    def write_chunks(self, chunks: pa.Table, documents: pa.Table) -> Iterator[FileEntry]:
        """The chunks of `documents`, each with what it shares with its document."""
        keys = self._run.partition_by
        filed = _file(documents.select(SHARED_BY_CHUNKS.names), keys)
        check_counts(keys, (path for path, _ in filed.partitions))
        owner: Any = pc.index_in(chunks["claim"], filed.rows["claim"].combine_chunks())
        rank: Ints = pc.fill_null(owner, -1).to_numpy()
        index = chunks["chunk_index"].to_numpy()
        order: Ints = np.lexsort((index, rank))
        # A document that came twice, the same in every respect, has two equal rows for each of its chunks.
        new = (np.diff(rank[order], prepend=-1) != 0) | (np.diff(index[order], prepend=-1) != 0)
        order = order[new & (rank[order] >= 0)]
        rank = rank[order]

        shared = filed.rows.select([*SHARED, *SIGNATURE.names])
        weights = weights_of("chunks", chunks)[order] + weights_of("chunks", shared)[rank]

        def rows(start: int, stop: int) -> pa.Table:
            own = gathered(chunks, order[start:stop], "text")
            of_document = shared.take(rank[start:stop])
            return pa.table({**columns(own), **columns(of_document)})

        yield from self._write("chunks", filed.partitions, filed.numbers[rank], weights, rows)

    def write(self, kind: Kind, table: pa.Table) -> Iterator[FileEntry]:
        """The rows of a side table."""
        filed = _file(table)

        def rows(start: int, stop: int) -> pa.Table:
            return filed.rows.slice(start, stop - start)

        yield from self._write(kind, filed.partitions, filed.numbers, weights_of(kind, filed.rows), rows)

    def write_ids(
        self, kind: Kind, partition: str, chunker: str | None, ids: pa.Table
    ) -> Iterator[FileEntry]:
        """Ids of chunks of one partition."""
        ids = ids.cast(columns_of(*ids.column_names))
        rows = signed(sort_by(ids, "document_id", "chunk_id"), self._run)
        numbers = np.zeros(len(ids), np.int64)

        def part(start: int, stop: int) -> pa.Table:
            return rows.slice(start, stop - start)

        yield from self._write(kind, [(partition, chunker)], numbers, weights_of(kind, ids), part)

    def write_rows(
        self, kind: Kind, folder: str, chunker: str | None, rows: pa.Table, order: Ints
    ) -> Iterator[FileEntry]:
        """Rows that the table has already."""
        numbers = np.zeros(len(rows), np.int64)
        weights = weights_of(kind, rows)[order]

        def part(start: int, stop: int) -> pa.Table:
            return with_values(rows.take(order[start:stop]), SIGNATURE, kept=True)

        yield from self._write(kind, [(folder, chunker)], numbers, weights, part)

    def write_empty(self, chunker: str | None) -> FileEntry:
        """A chunk file without rows."""
        file, staged = self._open("chunks", chunker, rows=1)
        keys = self._run.partition_by
        return file.close(
            staged, f"chunks/{partition_path(chunker, None, keys, (None,) * len(keys))}", self._part
        )

    def _write(
        self,
        kind: Kind,
        partitions: list[tuple[str, str | None]],
        numbers: Ints,
        weights: Ints,
        rows: Callable[[int, int], pa.Table],
    ) -> Iterator[FileEntry]:
        """As many files as each partition fills."""
        groups = row_groups(numbers, weights, self._layout)
        for number, bounds in groupby(groups, key=lambda group: group[0]):
            partition, chunker = partitions[number]
            file = None
            for _, start, stop in bounds:
                if file is None:
                    file, staged = self._open(kind, chunker, stop - start)
                part = rows(start, stop)
                file.add(in_schema(kind, chunker, part), part["kept"])
                if file.size >= self._layout.file_bytes:
                    yield file.close(staged, f"{kind}/{partition}", self._part)
                    file = None
            if file:
                yield file.close(staged, f"{kind}/{partition}", self._part)

    @property
    def _part(self) -> str:
        return f"part-{self._shard:05d}-of-{self._run.shards:05d}"

    def _open(self, kind: Kind, chunker: str | None, rows: int) -> tuple[ParquetFile, str]:
        # Named at random, so that a retry never writes to the file of an attempt that is still alive.
        staged = f"{staging(self._run.run_id)}/{kind}-{self._shard:05d}-{uuid4().hex}.parquet"
        sink = Sink(self._fs.open(prepare(self._fs, f"{self._root}/{staged}"), "wb"))
        return ParquetFile(kind, sink, chunker, rows, self._layout.profile), staged


class _Filed(NamedTuple):
    """Rows in the order of the files: by partition, then by document.

    Args:
        rows: The rows.
        partitions: Path and chunker of each partition.
        numbers: Number of each row's partition.
    """

    rows: pa.Table
    partitions: list[tuple[str, str | None]]
    numbers: Ints


def _file(rows: pa.Table, keys: tuple[str, ...] = ()) -> _Filed:
    """The rows by chunker, source and further keys."""
    facts = zip(
        rows["chunker"].to_pylist(),
        rows["source_name"].to_pylist(),
        *(partition_values(rows, key) for key in keys),
        strict=True,
    )
    places = [
        (partition_path(chunker, source, keys, tuple(values)), chunker) for chunker, source, *values in facts
    ]
    partitions = sorted(set(places), key=lambda place: (place[0], place[1] or ""))
    number = {place: position for position, place in enumerate(partitions)}
    column = pa.array([number[place] for place in places], pa.int64())
    rows = sort_by(rows.append_column("partition", column), "partition", *PLACE)
    return _Filed(rows.drop_columns(["chunker", "partition"]), partitions, rows["partition"].to_numpy())
