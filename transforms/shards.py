"""The rows of one shard, from packs to staged Parquet files whose bytes depend on the rows alone."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from typing import IO, Any, Literal, NamedTuple
from uuid import uuid4

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.packs import PACKS, chunker_json, read_packs
from transforms.partitions import MISSING, check_counts, folder_key, partition_values
from transforms.provenance import ChunkerRecord, Run, pipeline_version
from transforms.run_report import tally
from transforms.schemas import CHUNKS, SCHEMAS, fingerprint
from transforms.storage import filesystem

Kind = Literal["chunks", "documents", "dead_letters", "deletes", "changes"]
Ints = npt.NDArray[np.int64]

DUPLICATE = "duplicate_document_id"
RETIRED = "retired"


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


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A data file, staged or in the table.

    Args:
        kind: The table it belongs to.
        path: Its final path, relative to the output.
        staged: Where it was written, relative to the output.
        rows: Rows.
        bytes: Size.
        sha256: Digest of the bytes, in hex.
        min_document_id: First document id; None without rows.
        max_document_id: Last document id.
        documents: Documents that it tells of.
        tokens: Tokens of its rows.
        chunker: Chunker of its partition.
        tally: Counts for the run report, by group and name.
    """

    kind: Kind
    path: str
    staged: str
    rows: int
    bytes: int
    sha256: str
    min_document_id: str | None
    max_document_id: str | None
    documents: int
    tokens: int
    chunker: ChunkerRecord | None = None
    tally: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def partition(self) -> str:
        """What `overwrite` replaces as one: `chunker=.../source=...`, whatever folders lie below it."""
        return "/".join(self.path.split("/")[1:3])

    @property
    def folder(self) -> str:
        """Folder of the file."""
        return self.path.rpartition("/")[0]

    @property
    def shard(self) -> int:
        """Shard of the file."""
        return int(self.path.rpartition("/part-")[2].partition("-")[0])

    @property
    def tells_of_a_commit(self) -> bool:
        """Whether the file says what one commit did, so that no later one replaces it."""
        return self.kind in ("deletes", "changes")


# Names of folders.

# What one reader or another takes for a truth value, a number, a date or nothing.
_GUESSED = frozenset("true false null none nan inf infinity epoch".split())


def slug(value: str | None) -> str:
    """`value` as a partition value that every reader gives back as the same string.

    A plain lower-case name stays as it is. Anything else is spelled in plain letters and ends in 12 digits of
    its hash, with at most 63 characters in all.
    """
    if not value:
        return MISSING
    is_plain = re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", value) and value not in _GUESSED
    if is_plain and not re.search(r"-[0-9a-f]{12}$", value):
        return value
    letters = unicodedata.normalize("NFKD", value[:200]).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9_]+", "-", letters).strip("-_")
    plain = words if words[:1].isalpha() else f"v-{words}"
    digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{plain[:50].rstrip('-_')}-{digest}"


def chunker_value(chunker: ChunkerRecord | None) -> str:
    """The partition value of a chunker: its name and the first 12 digits of its hash."""
    return f"{slug(chunker.name)}-{chunker.hash[:12]}" if chunker else MISSING


STAGING = "control/staging"


def staging(run_id: str) -> str:
    """Folder of a run's staged files, relative to the output."""
    return f"{STAGING}/{run_name(run_id)}"


def run_name(run_id: str) -> str:
    """The run id as the name of a file or folder."""
    return run_id if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", run_id) else slug(run_id)


def prepare(fs: fsspec.AbstractFileSystem, path: str) -> str:
    """`path`, with its folder made where there are folders; stores of objects have none."""
    if getattr(fs, "local_file", False):
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
    return path


@lru_cache(maxsize=65_536)
def _partition(
    chunker: str | None, source: str | None, keys: tuple[str, ...] = (), values: tuple[str | None, ...] = ()
) -> str:
    below = (f"/{folder_key(key)}={slug(value)}" for key, value in zip(keys, values, strict=True))
    return f"chunker={chunker_value(_record(chunker))}/source={slug(source)}{''.join(below)}"


def _record(chunker: str | None) -> ChunkerRecord | None:
    return ChunkerRecord(**json.loads(chunker)) if chunker else None


# The rows: which of them stand, and in which order.

_SIGNATURE = pa.schema(
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
    known = {f.name: f for schema in (_SIGNATURE, *PACKS.values()) for f in schema}
    return pa.schema([known[name] for name in names])


_BY_CHUNKER = ("chunker_name", "chunker_hash")
LEDGER = columns_of(
    *(name for name in SCHEMAS["documents"].names if name not in _BY_CHUNKER), "claim", "chunker", "kept"
)
LETTERS = columns_of(*SCHEMAS["dead_letters"].names, "chunker", "kept")
SHARED_BY_CHUNKS = columns_of(*SHARED, *_SIGNATURE.names, "source_row", "claim", "chunker")


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
    packs: Iterable[bytes],
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
    documents = _resolve(rows["documents"], kept.taken)
    letters = _filed(rows["dead_letters"], default_chunker)
    standing = documents.filter(pc.is_null(documents["refused"]))
    refused = documents.filter(pc.is_valid(documents["refused"]))

    writer = _ShardWriter(shard, run, output, layout)
    gone, deleted = _deleted(_absent(kept.gone, standing)), _absent(kept.deleted, standing)
    ledger = _signed(_joined(_ledger(standing, refused, letters), gone), run)
    failed = _signed(_dead_letters(refused, letters), run)
    return [
        *writer.write_chunks(rows["chunks"], _joined(_signed(standing, run), kept.shared)),
        *writer.write("documents", _joined(ledger, kept.documents, deleted)),
        *writer.write("dead_letters", _joined(failed, kept.dead_letters)),
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


_PLACE = ("document_id", "source_uri", "source_row")


def _sort(rows: pa.Table, *names: str) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in names])


def _resolve(documents: pa.Table, taken: Mapping[tuple[str, str], str]) -> pa.Table:
    """The documents in the order of their claims, with `refused`: why one does not stand, or null."""
    documents = _sort(documents, *_PLACE, "chunker", "claim")
    refused: list[str | None] = [None] * len(documents)
    if taken:
        chunkers = (_record(chunker) for chunker in documents["chunker"].to_pylist())
        values = [chunker_value(chunker) if chunker else "" for chunker in chunkers]
        for position, claim in enumerate(zip(values, documents["document_id"].to_pylist(), strict=True)):
            if (place := taken.get((claim[0], str(claim[1])))) is not None:
                refused[position] = (
                    f"the table holds a document from {place} by the id {claim[1]!r}; give every document an id of its "
                    "own, or overwrite the table"
                )
    if pc.count_distinct(documents["document_id"]).as_py() < len(documents):
        claims = (documents[name].to_pylist() for name in (*_PLACE, "chunker"))
        for held, group in groupby(enumerate(zip(*claims, strict=True)), key=lambda claim: claim[1][0]):
            first, seen = None, set()
            for position, (_, uri, row, chunker) in group:
                first = first or (uri, row)
                if not refused[position] and ((uri, row) != first or chunker in seen):
                    refused[position] = _refusal(held, *first)
                seen.add(chunker)
    return documents.append_column("refused", pa.array(refused, pa.large_string()))


def _refusal(document_id: str, uri: str | None, row: int | None) -> str:
    place = ", ".join([*([uri] if uri else []), *([] if row is None else [f"row {row}"])])
    other = f"another document ({place})" if place else "another document"
    return f"the id {document_id!r} is taken by {other}; give every document an id of its own"


def _filed(letters: pa.Table, chunker: ChunkerRecord | None) -> pa.Table:
    """The dead letters in a fixed order, under the chunker that would have cut their documents."""
    value = chunker_json(chunker) if chunker else None
    column = _constant(value, pa.large_string(), len(letters))
    return _sort(letters, *letters.column_names).append_column("chunker", column)


def _ledger(standing: pa.Table, refused: pa.Table, letters: pa.Table) -> pa.Table:
    failure = {"status": "failed", "chunk_count": 0, "token_count": 0, "over_budget_count": 0}
    refused = _with(
        refused,
        standing.schema,
        reason=DUPLICATE,
        lost_chars=None,
        removed_chars=None,
        coverage=None,
        **failure,
    )
    letters = _with(letters.drop_columns(["stage", "message", "documents"]), standing.schema, **failure)
    return pa.concat_tables([standing, refused, letters], promote_options="default")


def _dead_letters(refused: pa.Table, letters: pa.Table) -> pa.Table:
    shared = refused.select([name for name in letters.column_names if name in refused.column_names])
    shared = _with(shared, letters.schema, stage="write", reason=DUPLICATE, documents=1)
    shared = shared.append_column("message", refused["refused"])
    return pa.concat_tables([letters, shared.select(letters.column_names)])


def _absent(rows: pa.Table, standing: pa.Table) -> pa.Table:
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


def _deleted(gone: pa.Table) -> pa.Table:
    counts = dict.fromkeys(("chunk_count", "token_count", "over_budget_count"), 0)
    return _with(gone, gone.schema, status="deleted", reason=RETIRED, **counts, **dict.fromkeys(_OF_TEXT))


def _joined(rows: pa.Table, *more: pa.Table) -> pa.Table:
    tables = [rows, *(table for table in more if len(table))]
    return pa.concat_tables(tables, promote_options="default") if len(tables) > 1 else rows


def _signed(rows: pa.Table, run: Run) -> pa.Table:
    """Rows that `run` writes anew."""
    return _with(
        rows,
        _SIGNATURE,
        pipeline_version=pipeline_version(),
        run_id=run.run_id,
        job_id=run.job_id,
        created_at=run.created_at,
        kept=False,
    )


def _with(rows: pa.Table, schema: pa.Schema, **values: object) -> pa.Table:
    """`rows` with the same value in each of them, for every name of `values`."""
    for name, value in values.items():
        kept = rows.drop_columns([name]) if name in rows.column_names else rows
        rows = kept.append_column(name, _constant(value, schema.field(name).type, len(rows)))
    return rows


def _constant(value: object, kind: pa.DataType, rows: int) -> pa.Array[Any]:
    scalar: Any = pa.scalar(value, kind)
    column: pa.Array[Any] = pa.repeat(scalar, rows)
    return column


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
        (_partition(chunker, source, keys, tuple(values)), chunker) for chunker, source, *values in facts
    ]
    partitions = sorted(set(places), key=lambda place: (place[0], place[1] or ""))
    number = {place: position for position, place in enumerate(partitions)}
    column = pa.array([number[place] for place in places], pa.int64())
    rows = _sort(rows.append_column("partition", column), "partition", *_PLACE)
    return _Filed(rows.drop_columns(["chunker", "partition"]), partitions, rows["partition"].to_numpy())


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


def _weights(kind: Kind, rows: pa.Table) -> Ints:
    """Raw bytes of each row, about: the same for new rows and for those that come from a file."""
    total = np.zeros(len(rows), np.int64)
    for name in SCHEMAS[kind].names:
        if name in _OF_ROWS and name in rows.column_names:
            # Together the chunks would be a copy of all texts.
            total += np.concatenate([total[:0], *map(_row_bytes, rows[name].chunks)])
    return total


def _row_groups(partitions: Ints, weights: Ints, layout: Layout) -> Iterator[tuple[int, int, int]]:
    """Partition, start and stop of the consecutive rows that make a row group within `layout`."""
    total = _running(weights)
    start = 0
    for edge in [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]:
        while start < edge:
            full = int(np.searchsorted(total, total[start] + layout.row_group_bytes, "right")) - 1
            stop = max(start + 1, min(edge, start + layout.row_group_rows, full))
            yield int(partitions[start]), start, stop
            start = stop


# The files.

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
    facts = {"chunkmill.schema": fingerprint(schema)} | ({"chunkmill.chunker": chunker} if chunker else {})
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


class _Sink:
    """A file being written that knows the size and the digest of what went in."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        self.closed = True


class _File:
    """One file being written, and what its entry will tell.

    Args:
        kind: The table it belongs to.
        sink: Where it goes.
        chunker: Chunker of its partition, as canonical JSON.
        rows: Rows of its first row group.
        profile: Profile of the layout.
    """

    def __init__(self, kind: Kind, sink: _Sink, chunker: str | None, rows: int, profile: str) -> None:
        self._kind = kind
        self._sink = sink
        self._chunker = _record(chunker)
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

        shared = filed.rows.select([*SHARED, *_SIGNATURE.names])
        weights = _weights("chunks", chunks)[order] + _weights("chunks", shared)[rank]

        def rows(start: int, stop: int) -> pa.Table:
            own = chunks.take(order[start:stop])
            of_document = shared.take(rank[start:stop])
            return pa.table({**_columns(own), **_columns(of_document)})

        yield from self._write("chunks", filed.partitions, filed.numbers[rank], weights, rows)

    def write(self, kind: Kind, table: pa.Table) -> Iterator[FileEntry]:
        """The rows of a side table."""
        filed = _file(table)

        def rows(start: int, stop: int) -> pa.Table:
            return filed.rows.slice(start, stop - start)

        yield from self._write(kind, filed.partitions, filed.numbers, _weights(kind, filed.rows), rows)

    def write_ids(
        self, kind: Kind, partition: str, chunker: str | None, ids: pa.Table
    ) -> Iterator[FileEntry]:
        """Ids of chunks of one partition."""
        ids = ids.cast(columns_of(*ids.column_names))
        rows = _signed(_sort(ids, "document_id", "chunk_id"), self._run)
        numbers = np.zeros(len(ids), np.int64)

        def part(start: int, stop: int) -> pa.Table:
            return rows.slice(start, stop - start)

        yield from self._write(kind, [(partition, chunker)], numbers, _weights(kind, ids), part)

    def write_rows(
        self, kind: Kind, folder: str, chunker: str | None, rows: pa.Table, order: Ints
    ) -> Iterator[FileEntry]:
        """Rows that the table has already."""
        numbers = np.zeros(len(rows), np.int64)
        weights = _weights(kind, rows)[order]

        def part(start: int, stop: int) -> pa.Table:
            return _with(rows.take(order[start:stop]), _SIGNATURE, kept=True)

        yield from self._write(kind, [(folder, chunker)], numbers, weights, part)

    def write_empty(self, chunker: str | None) -> FileEntry:
        """A chunk file without rows."""
        file, staged = self._open("chunks", chunker, rows=1)
        keys = self._run.partition_by
        return file.close(
            staged, f"chunks/{_partition(chunker, None, keys, (None,) * len(keys))}", self._part
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
        groups = _row_groups(numbers, weights, self._layout)
        for number, bounds in groupby(groups, key=lambda group: group[0]):
            partition, chunker = partitions[number]
            file = None
            for _, start, stop in bounds:
                if file is None:
                    file, staged = self._open(kind, chunker, stop - start)
                part = rows(start, stop)
                file.add(_table(kind, chunker, part), part["kept"])
                if file.size >= self._layout.file_bytes:
                    yield file.close(staged, f"{kind}/{partition}", self._part)
                    file = None
            if file:
                yield file.close(staged, f"{kind}/{partition}", self._part)

    @property
    def _part(self) -> str:
        return f"part-{self._shard:05d}-of-{self._run.shards:05d}"

    def _open(self, kind: Kind, chunker: str | None, rows: int) -> tuple[_File, str]:
        # Named at random, so that a retry never writes to the file of an attempt that is still alive.
        staged = f"{staging(self._run.run_id)}/{kind}-{self._shard:05d}-{uuid4().hex}.parquet"
        sink = _Sink(self._fs.open(prepare(self._fs, f"{self._root}/{staged}"), "wb"))
        return _File(kind, sink, chunker, rows, self._layout.profile), staged


def _table(kind: Kind, chunker: str | None, rows: pa.Table) -> pa.Table:
    """`rows` in the schema of their kind, with what their chunker says of all of them."""
    same: dict[str, object] = {}
    if record := _record(chunker):
        same = {
            "chunker_name": record.name,
            "chunker_version": record.version,
            "chunker_hash": record.hash,
            "tokenizer": record.tokenizer,
        }
    given = _columns(rows)
    columns = [
        given[f.name].cast(f.type) if f.name in given else _constant(same.get(f.name), f.type, len(rows))
        for f in SCHEMAS[kind]
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMAS[kind])


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray[Any]]:
    return dict(zip(rows.column_names, rows.columns, strict=True))
