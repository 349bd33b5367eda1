"""Which chunks left a table with a commit and which came, for those who keep an index of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.parquet_files import chunker_in
from transforms.paths import FileEntry, Kind
from transforms.provenance import Run
from transforms.shards import write_ids
from transforms.table import Store, each

_COLUMNS = ["chunk_id", "document_id"]


def differences(
    store: Store,
    run: Run,
    output: str,
    removed: Sequence[FileEntry],
    added: Sequence[FileEntry],
    *,
    by_shard: bool,
) -> list[FileEntry]:
    """Stage what a commit says of the chunks that left and of those that came, one or two files for each partition.

    A chunk that is in removed files and in added ones did neither.

    Args:
        store: Where the files are.
        run: The run.
        output: Root of the table.
        removed: Files that the commit replaces.
        added: Files that it adds, staged or moved already.
        by_shard: Whether no document goes to another shard, so that a shard can be looked at by itself.
    """
    held = [[entry for entry in entries if entry.kind == "chunks"] for entries in (removed, added)]
    shards = sorted({entry.shard if by_shard else 0 for entries in held for entry in entries})

    def of_shard(shard: int) -> list[FileEntry]:
        before, after = ([e for e in entries if e.shard == shard or not by_shard] for entries in held)
        return list(_of_shard(store, run, output, shard, before, after))

    return [entry for entries in each(of_shard, shards) for entry in entries]


class _Part(NamedTuple):
    """Ids of a file's chunks, and where they belong."""

    partition: str
    chunker: str | None
    ids: pa.Table


def _of_shard(
    store: Store, run: Run, output: str, shard: int, removed: Sequence[FileEntry], added: Sequence[FileEntry]
) -> Iterator[FileEntry]:
    before, after = ([_read(store, entry) for entry in entries] for entries in (removed, added))
    yield from _write("deletes", before, after, shard, run, output)
    yield from _write("changes", after, before, shard, run, output)


def _read(store: Store, entry: FileEntry) -> _Part:
    with store.opened(*filter(None, (entry.staged, entry.path))) as file:
        parquet = pq.ParquetFile(file)
        chunker = chunker_in(parquet.schema_arrow)
        ids = parquet.read(_COLUMNS, use_threads=False)
    return _Part(entry.partition, chunker, ids)


def _write(
    kind: Kind, parts: Sequence[_Part], others: Sequence[_Part], shard: int, run: Run, output: str
) -> Iterator[FileEntry]:
    """The ids of `parts` that are not among the others."""
    known: Any = pa.chunked_array(
        [chunk for part in others for chunk in part.ids["chunk_id"].chunks], pa.string()
    )
    places = sorted(
        {(part.partition, part.chunker) for part in parts}, key=lambda place: (place[0], place[1] or "")
    )
    for partition, chunker in places:
        ids = pa.concat_tables(
            part.ids for part in parts if (part.partition, part.chunker) == (partition, chunker)
        )
        new = ids.filter(pc.invert(pc.is_in(ids["chunk_id"], known.combine_chunks())))
        yield from write_ids(kind, shard, run, output, partition, chunker, new)
