"""Files of a run that wait for their commit, as tests make them."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.packs import PackBuilder
from transforms.parquet_files import STANDARD, Layout
from transforms.paths import FileEntry
from transforms.provenance import ChunkerRecord, Run
from transforms.records import DeadLetter, DocumentChunks
from transforms.shards import write_shard


def staged(
    output: str,
    run: Run,
    elements: Iterable[DocumentChunks | DeadLetter],
    chunker: ChunkerRecord,
    layout: Layout = STANDARD,
) -> list[FileEntry]:
    """Write `elements` as the shards of `run`."""
    builder = PackBuilder(run)
    packs = [pack for element in elements for pack in builder.add(element)] + builder.flush()
    return [
        entry
        for shard in sorted({shard for shard, _ in packs})
        for entry in write_shard(shard, [p for of, p in packs if of == shard], run, output, chunker, layout)
    ]
