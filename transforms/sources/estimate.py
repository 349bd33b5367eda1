"""How much there is to read, before it is read."""

from __future__ import annotations

from collections.abc import Sequence

from transforms.errors import ReadError
from transforms.sources.files import SourceFile
from transforms.sources.tables import opened

# Opening a footer costs a request; the ratio of a few files stands for all of them.
_SAMPLED = 16


def estimated_bytes(files: Sequence[SourceFile]) -> int:
    """About the bytes of all documents, uncompressed; the same for the same files.

    Args:
        files: The files.
    """
    tables = [file for file in files if file.format == "parquet"]
    stored = sum(file.size for file in tables)
    sampled = [(file.size, size) for file in tables[:_SAMPLED] if (size := _uncompressed(file)) is not None]
    if sampled:
        stored = stored * sum(size for _, size in sampled) // max(sum(size for size, _ in sampled), 1)
    return stored + sum(file.size for file in files if file.format == "object")


def _uncompressed(table: SourceFile) -> int | None:
    try:
        with opened(table) as (_, parquet):
            groups = range(parquet.metadata.num_row_groups)
            return sum(max(parquet.metadata.row_group(group).total_byte_size, 0) for group in groups)
    except ReadError:
        return None  # it becomes a dead letter when it is read
