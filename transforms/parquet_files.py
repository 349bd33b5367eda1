"""A Parquet file of the table as it is written: its row groups, its encodings, and what its entry will tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.packs import PACKS
from transforms.paths import FileEntry, Kind, record_of
from transforms.rows import columns, constant
from transforms.run_report import tally
from transforms.schemas import SCHEMAS, fingerprint

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are cut and encoded.

    Args:
        row_group_rows: Most rows of a row group.
        row_group_bytes: Most raw bytes of a row group, which bounds the memory of its readers; a row that is
            larger stands alone.
        file_bytes: Size at which a file is full, in bytes as written.
        profile: `standard`, or `compat` without delta encodings, for readers that lack them.
    """

    row_group_rows: int = 65_536
    row_group_bytes: int = 64 * 1024 * 1024
    file_bytes: int = 256 * 1024 * 1024
    profile: Literal["standard", "compat"] = "standard"


STANDARD = Layout()


# Row groups.


def _row_bytes(column: Any) -> Ints:
    """Raw bytes of each value, about."""
    if pa.types.is_large_string(column.type):
        lengths: Ints = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        return lengths
    if pa.types.is_list(column.type):
        ends: Ints = _running(_row_bytes(column.values))[column.offsets.to_numpy()]
        return ends[1:] - ends[:-1]
    if pa.types.is_struct(column.type):
        return sum((_row_bytes(part) for part in column.flatten()), np.zeros(len(column), np.int64))
    return np.full(len(column), 8, np.int64)


def _running(values: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])


_OF_ROWS = {name for schema in PACKS.values() for name in schema.names}


def weights_of(kind: Kind, rows: pa.Table) -> Ints:
    """Raw bytes of each row, about: the same for new rows and for those that come from a file."""
    total = np.zeros(len(rows), np.int64)
    for name in SCHEMAS[kind].names:
        if name in _OF_ROWS and name in rows.column_names:
            # Together the chunks would be a copy of all texts.
            total += np.concatenate([total[:0], *map(_row_bytes, rows[name].chunks)])
    return total


def row_groups(partitions: Ints, weights: Ints, layout: Layout) -> Iterator[tuple[int, int, int]]:
    """Partition, start and stop of the consecutive rows that make a row group within `layout`."""
    total = _running(weights)
    start = 0
    for edge in [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]:
        while start < edge:
            full = int(np.searchsorted(total, total[start] + layout.row_group_bytes, "right")) - 1
            stop = max(start + 1, min(edge, start + layout.row_group_rows, full))
            yield int(partitions[start]), start, stop
            start = stop


# The file.

_CHUNKER = "chunkmill.chunker"

_REPEATED = {"chunk_count", "heading_level", "page_start", "page_end", "source_size", "source_modified_at"}
_REPEATED |= {"chunker_version", "created_at"}
_DISTINCT = {
    "chunks": {"chunk_id", "text"},
    "documents": {
        "document_id",
        "source_uri",
        "source_etag",
        "content_sha256",
        "text_sha256",
        "title",
        "text",
    },
    "dead_letters": {"document_id", "source_uri", "message"},
    "deletes": {"chunk_id"},
    "changes": {"chunk_id"},
}


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Paths and types of the Parquet columns of a field."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves(f"{name}.{part.name}", part.type)
    else:
        yield name, kind


def _encodings(kind: Kind, profile: str) -> dict[str, Any]:
    """The listed dictionary columns, and the encodings of the others."""
    dictionary, delta = [], {}
    for column in SCHEMAS[kind]:
        for path, leaf in _leaves(column.name, column.type):
            if column.name in _DISTINCT[kind]:
                delta[path] = "DELTA_LENGTH_BYTE_ARRAY"
            elif column.name not in _REPEATED and pa.types.is_integer(leaf):
                delta[path] = "DELTA_BINARY_PACKED"
            elif not pa.types.is_boolean(leaf):
                dictionary.append(path)
    return {"use_dictionary": dictionary, "column_encoding": delta if profile == "standard" else None}


def _parquet(sink: Any, kind: Kind, chunker: str | None, rows: int, profile: str) -> pq.ParquetWriter:
    schema = SCHEMAS[kind]
    facts = {"chunkmill.schema": fingerprint(schema)} | ({_CHUNKER: chunker} if chunker else {})
    order = ("document_id", "chunk_index") if kind == "chunks" else ("document_id",)
    options = _encodings(kind, profile)
    if kind == "chunks" and int(pa.__version__.partition(".")[0]) >= 24:
        options["bloom_filter_options"] = {"chunk_id": {"ndv": rows, "fpp": 0.01}}
    return pq.ParquetWriter(
        sink,
        schema.with_metadata(facts),
        compression="zstd",
        compression_level=3,
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=pq.SortingColumn.from_ordering(schema, [(name, "ascending") for name in order]),
        **options,
    )


def chunker_in(schema: pa.Schema) -> str | None:
    """The chunker of a file, as canonical JSON, by the file's schema."""
    chunker = (schema.metadata or {}).get(_CHUNKER.encode())
    return chunker.decode() if chunker else None


class Sink:
    """A file being written that knows the size and the digest of what went in."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Do nothing, since closing writes all of it."""

    def close(self) -> None:
        """Close the file; once is enough."""
        if not self.closed:
            self._file.close()
        self.closed = True


class ParquetFile:
    """One file being written, and what its entry will tell.

    Args:
        kind: The table it belongs to.
        sink: Where it goes.
        chunker: Chunker of its partition, as canonical JSON.
        rows: Rows of its first row group.
        profile: Profile of the layout.
    """

    def __init__(self, kind: Kind, sink: Sink, chunker: str | None, rows: int, profile: str) -> None:
        self._kind = kind
        self._sink = sink
        self._chunker = record_of(chunker)
        self._writer = _parquet(sink, kind, chunker, rows, profile)
        self._rows = self._documents = self._tokens = 0
        self._first: str | None = None
        self._last: str | None = None
        self._counted: str | None = None
        self._tally: dict[str, Counter[str]] = {}

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._sink.size

    def add(self, rows: pa.Table, kept: pa.ChunkedArray[Any]) -> None:
        """Write `rows` as one row group; only those that are not `kept` are counted as the run's."""
        self._writer.write_table(rows, row_group_size=len(rows))
        ids = rows["document_id"]
        self._first = self._first if self._rows else ids[0].as_py()
        self._last = ids[-1].as_py()
        self._rows += len(rows)
        if self._kind == "dead_letters":
            self._documents += _sum(rows["documents"])
        else:
            there = (
                ids.filter(pc.not_equal(rows["status"], pa.scalar("deleted")))
                if self._kind == "documents"
                else ids
            )
            self._documents += len(pc.unique(there)) - (self._counted in there[:1].to_pylist())
            self._counted = there[-1].as_py() if len(there) else self._counted
        if "token_count" in rows.column_names:
            self._tokens += _sum(rows["token_count"])
        new = rows.filter(pc.invert(kept)) if pc.any(kept).as_py() else rows
        for group, counts in tally(self._kind, new, self._chunker).items():
            self._tally.setdefault(group, Counter()).update(counts)

    def close(self, staged: str, folder: str, part: str) -> FileEntry:
        """Finish the file.

        Args:
            staged: Its path, relative to the output.
            folder: Folder of its final path.
            part: Name there, to which the digest of the bytes is added.
        """
        self._writer.close()
        self._sink.close()
        digest = self._sink.digest.hexdigest()
        return FileEntry(
            kind=self._kind,
            path=f"{folder}/{part}-{digest[:16]}.parquet",
            staged=staged,
            rows=self._rows,
            bytes=self._sink.size,
            sha256=digest,
            min_document_id=self._first,
            max_document_id=self._last,
            documents=self._documents,
            tokens=self._tokens,
            chunker=self._chunker,
            tally={group: dict(counts) for group, counts in self._tally.items()},
        )


def _sum(column: pa.ChunkedArray[Any]) -> int:
    return pc.sum(column).as_py() or 0


def in_schema(kind: Kind, chunker: str | None, rows: pa.Table) -> pa.Table:
    """`rows` in the schema of their kind, with what their chunker says of all of them."""
    same: dict[str, object] = {}
    if record := record_of(chunker):
        same = {
            "chunker_name": record.name,
            "chunker_version": record.version,
            "chunker_hash": record.hash,
            "tokenizer": record.tokenizer,
        }
    given = columns(rows)
    held = [
        given[f.name].cast(f.type) if f.name in given else constant(same.get(f.name), f.type, len(rows))
        for f in SCHEMAS[kind]
    ]
    return pa.Table.from_arrays(held, schema=SCHEMAS[kind])
