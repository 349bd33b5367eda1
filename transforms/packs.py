"""Rows on their way to the sink: Arrow IPC bytes of flat columns, so that a shuffle moves few small elements.

A chunk's row holds what differs between chunks. What it shares with its document travels once, in the
document's row, and `claim` joins the two. What is the same in the whole run is added by the writer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import Any, Literal

import pyarrow as pa

from transforms.fingerprint import Digest, digest_of
from transforms.provenance import ChunkerRecord, Run, canonical_json
from transforms.records import Chunk, DeadLetter, DocumentChunks, Source
from transforms.schemas import CHUNKS, DEAD_LETTERS, DOCUMENTS

PACK_BYTES = 2 * 1024 * 1024
HELD_BYTES = 64 * 1024 * 1024
ROW_BYTES = 256  # what the short columns of a row take, about
STEP = 16  # chunks between two looks at the size

Pack = tuple[int, bytes]
Compression = Literal["lz4"] | None

# Packs are small: to wake threads for one costs as much as to unfold it.
_ALONE = pa.ipc.IpcReadOptions(use_threads=False)


def wide(kind: pa.DataType) -> pa.DataType:
    """`kind` with 64-bit offsets, since one column of a shard may hold more than 2 GiB of text."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", wide(kind.value_type)))
    return kind


def _schema(kind: str, own: Mapping[str, pa.DataType], fields: Iterable[pa.Field[Any]]) -> pa.Schema:
    columns = {**own, **{f.name: wide(f.type) for f in fields}}
    return pa.schema(list(columns.items()), metadata={"kind": kind})


_ADDED_BY_WRITER = ("chunker_name", "chunker_hash", "run_id", "created_at")
_LAST_OF_CHUNK = CHUNKS.get_field_index("over_budget")

PACKS = {
    "chunks": _schema(
        "chunks",
        {"claim": pa.binary(16)},
        (f for f in list(CHUNKS)[: _LAST_OF_CHUNK + 1] if f.name not in ("document_id", "chunk_count")),
    ),
    "documents": _schema(
        "documents",
        {"claim": pa.binary(16), "chunker": pa.large_string()},
        [
            *(f for f in DOCUMENTS if f.name not in _ADDED_BY_WRITER),
            *(CHUNKS.field(name) for name in ("license", "acl_labels", "tenant_id", "metadata")),
        ],
    ),
    "dead_letters": _schema("dead_letters", {}, (f for f in DEAD_LETTERS if f.name not in _ADDED_BY_WRITER)),
}


def shard_of(document_id: str, shards: int) -> int:
    """The shard that a document belongs to, the same on every machine and in every run."""
    digest = sha256(storable(document_id).encode()).digest()
    return int.from_bytes(digest[:8], "big") % shards


@dataclass(slots=True)
class _Held:
    """Rows of one shard that wait for their packs, with their raw size."""

    chunks: list[Chunk] = field(default_factory=list)
    claims: list[bytes] = field(default_factory=list)
    documents: list[tuple[object, ...]] = field(default_factory=list)
    letters: list[tuple[object, ...]] = field(default_factory=list)
    size: int = 0

    def packs(self, compression: Compression) -> Iterator[bytes]:
        """One pack of each kind that there is."""
        if self.chunks:
            yield _encode("chunks", [self.claims, *_chunk_columns(self.chunks)], compression)
        if self.documents:
            yield _encode("documents", list(zip(*self.documents, strict=True)), compression)
        if self.letters:
            yield _encode("dead_letters", list(zip(*self.letters, strict=True)), compression)


class PackBuilder:
    """Gathers rows by shard and gives them back as packs.

    Args:
        run: The run: its shards, and whether the ledger keeps each document's text.
        pack_bytes: Raw bytes at which the rows of a shard become packs; a single row may be larger.
        held_bytes: Raw bytes of all shards together at which everything is flushed.
        compression: Codec of the packs. None makes them two to three times as large, for a tenth of the CPU.
    """

    def __init__(
        self,
        run: Run,
        *,
        pack_bytes: int = PACK_BYTES,
        held_bytes: int = HELD_BYTES,
        compression: Compression = "lz4",
    ) -> None:
        self._run = run
        self._pack_bytes = pack_bytes
        self._held_bytes = held_bytes
        self._compression = compression
        self._shards: defaultdict[int, _Held] = defaultdict(_Held)
        self._size = 0

    def add(self, element: DocumentChunks | DeadLetter) -> list[Pack]:
        """Take `element`; gives the packs that this fills."""
        if isinstance(element, DeadLetter):
            shard = shard_of(element.document_id, self._run.shards)
            self._shards[shard].letters.append(_letter_row(element))
            return self._grow(shard, ROW_BYTES + len(element.message))

        text = element.document.text
        digest = element.document.digest or digest_of(text)
        row = _document_row(element, digest, keep_text=self._run.keep_text)
        # The chunker by its hash, which says as much as all of its settings.
        facts = repr((element.chunker.hash, *row[1:]))
        identity = "\n".join([facts, *(c.chunk_id for c in element.chunks)])
        claim = sha256(identity.encode("utf-8", "surrogatepass")).digest()[:16]
        shard = shard_of(element.document.document_id, self._run.shards)
        self._shards[shard].documents.append((claim, *row))
        packs = self._grow(shard, ROW_BYTES + len(facts))

        bytes_a_char = digest.size / max(len(text), 1)
        for start in range(0, len(element.chunks), STEP):
            chunks = element.chunks[start : start + STEP]
            held = self._shards[shard]
            held.chunks += chunks
            held.claims += [claim] * len(chunks)
            chars = sum(len(c.text) for c in chunks) + sum(len(c.context) for c in chunks if c.context)
            packs += self._grow(shard, ROW_BYTES * len(chunks) + int(chars * bytes_a_char))
        return packs

    def flush(self) -> list[Pack]:
        """The packs of everything that is held."""
        return [pack for shard in sorted(self._shards) for pack in self._flush(shard)]

    def _grow(self, shard: int, size: int) -> list[Pack]:
        self._shards[shard].size += size
        self._size += size
        if self._size >= self._held_bytes:
            return self.flush()
        return self._flush(shard) if self._shards[shard].size >= self._pack_bytes else []

    def _flush(self, shard: int) -> list[Pack]:
        held = self._shards.pop(shard)
        self._size -= held.size
        return [(shard, pack) for pack in held.packs(self._compression)]


def read_packs(
    packs: Iterable[bytes | pa.Buffer], chunks: Iterable[pa.RecordBatch] = ()
) -> dict[str, pa.Table]:
    """The rows of `packs` by kind; a kind without rows is an empty table.

    The texts of chunks stay in the parts they came in, so that those of packs on a disk are not copied.

    Args:
        packs: The packs; an empty one holds nothing.
        chunks: Further chunks, in the columns of packs.
    """
    batches: dict[str, list[pa.RecordBatch]] = {kind: [] for kind in PACKS}
    batches["chunks"].extend(chunks)
    for pack in packs:
        if pack:
            with pa.ipc.open_stream(pack, options=_ALONE) as reader:
                batches[reader.schema.metadata[b"kind"].decode()].extend(reader)
    parts = {"chunks": ("text",)}
    return {kind: merge(schema, batches.pop(kind), parts.get(kind, ())) for kind, schema in PACKS.items()}


def merge(schema: pa.Schema, batches: list[pa.RecordBatch], parts: Sequence[str] = ()) -> pa.Table:
    """One array for each column; the parts of a column are freed before the next is merged, and `batches` is empty.

    Args:
        schema: The schema of the rows.
        batches: The rows.
        parts: Columns that are left in parts.
    """
    columns = [[batch.column(f.name) for batch in batches] or [pa.array([], f.type)] for f in schema]
    batches.clear()
    merged: list[Any] = []
    for name in schema.names:
        held = columns.pop(0)
        merged.append(pa.chunked_array(held) if name in parts else pa.concat_arrays(held))
    return pa.table(merged, schema=schema)


def _encode(kind: str, columns: Sequence[Sequence[object]], compression: Compression) -> bytes:
    schema = PACKS[kind]
    arrays = [_array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return sink.getvalue().to_pybytes()


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array[Any]:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_all_storable(value) for value in values], kind)


def _all_storable(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    return [_all_storable(item) for item in value] if isinstance(value, (list, tuple)) else value


def storable(text: str) -> str:
    """`text` with U+FFFD for halves of surrogate pairs, which names of files may hold and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _chunk_columns(chunks: Sequence[Chunk]) -> list[Sequence[object]]:
    # The columns under the names of the fields.
    of: Any = Chunk._make(zip(*chunks, strict=True))
    nothing = [None] * len(chunks)
    hulls, parts = list(chain.from_iterable(of.spans)), nothing
    if len(hulls) > len(chunks):
        hulls = [(spans[0][0], spans[-1][1]) for spans in of.spans]
        parts = [spans if len(spans) > 1 else None for spans in of.spans]
    first_page, last_page, places = nothing, nothing, of.locations
    if any(places):
        pages = [[place.page for place in held] for held in places]
        first_page, last_page = ([end(held) if held else None for held in pages] for end in (min, max))
        places = [[(place.page, place.box) for place in held] for held in places]
    return [
        of.chunk_id,
        of.index,
        of.text,
        of.token_count,
        of.context,
        *zip(*hulls, strict=True),
        *zip(*of.byte_span, strict=True),
        parts,
        of.overlap,
        *zip(*of.lines, strict=True),
        of.kind,
        of.heading_level,
        of.heading_path,
        of.parent_id,
        first_page,
        last_page,
        places,
        of.images,
        of.is_derived,
        of.over_budget,
    ]


def _document_row(item: DocumentChunks, digest: Digest, *, keep_text: bool) -> tuple[object, ...]:
    document = item.document
    chars = len(document.text)
    return (
        chunker_json(item.chunker),
        document.document_id,
        *_source_columns(document.source),
        digest.sha256,
        document.media_type,
        document.title,
        document.language,
        document.parser_name,
        document.parser_version,
        item.status,
        item.reason,
        len(item.chunks),
        sum(c.token_count for c in item.chunks),
        chars,
        digest.size,
        item.lost,
        1 - item.lost / chars if item.lost else 1.0,
        sum(c.over_budget for c in item.chunks),
        document.text if keep_text else None,
        canonical_json(dict(item.notes)) if item.notes else None,
        item.removed,
        document.source.input_uri,
        document.source.input_state,
        document.license,
        document.acl_labels,
        document.tenant_id,
        _metadata_json(document.metadata),
    )


def _letter_row(letter: DeadLetter) -> tuple[object, ...]:
    return (
        letter.document_id,
        letter.stage,
        letter.reason,
        letter.message,
        letter.documents,
        *_source_columns(letter.source),
        letter.media_type,
        letter.source.input_uri,
        letter.source.input_state,
    )


def _source_columns(source: Source) -> tuple[object, ...]:
    return (
        source.name,
        source.uri,
        source.row,
        source.version,
        source.etag,
        source.size,
        source.modified_at,
        source.content_sha256,
    )


def _metadata_json(metadata: Mapping[str, object]) -> str | None:
    if not metadata:
        return None
    try:
        return canonical_json(metadata)
    except TypeError:  # dates and decimals of a table's columns, which JSON has not
        return canonical_json(json.loads(json.dumps(dict(metadata), default=str)))


@lru_cache(maxsize=1024)
def chunker_json(chunker: ChunkerRecord) -> str:
    """The chunker as rows and files carry it."""
    return canonical_json(asdict(chunker))
