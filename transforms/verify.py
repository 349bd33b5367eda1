"""Proof of a committed table: what can be known again from its files, and from its sources, is compared.

One pass, shard by shard. All files of a shard are sorted by document id, so that one merge brings together
all that the table holds of a document. Documents that are read again are put on disk by shard, and join in.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from heapq import merge
from itertools import chain, count, groupby, repeat
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from transforms import parsers, sources
from transforms.commit import Table
from transforms.errors import CommitError, ConfigError, ParseError
from transforms.fingerprint import chunk_id
from transforms.packs import Pack, PackBuilder, read_packs, shard_of
from transforms.parsers import ParseSettings
from transforms.provenance import ChunkerRecord, Run
from transforms.records import DeadLetter, Document, DocumentChunks, Span
from transforms.schemas import CHUNKERS, SCHEMAS
from transforms.shards import FileEntry, chunker_value
from transforms.sources import ReadSettings, SourceFile
from transforms.storage import filesystem, is_transient, public_uri
from transforms.tokenizers import Tokenizer, get_tokenizer

CHECKS: Mapping[str, str] = {
    "manifest": "The manifests follow each other, and LATEST names the last.",
    "missing": "A file that the manifest names is there.",
    "bytes": "A file has the size that the manifest says.",
    "sha256": "A file has the digest that the manifest says.",
    "unreadable": "A file can be read.",
    "rows": "A file has as many rows as the manifest says.",
    "schema": "A file has the schema of its kind.",
    "foreign": "No data file is there that the manifest does not name.",
    "staging": "No staged file is left.",
    "chunkers": "Each chunker of a file is in `chunkers/`, as the manifest has it.",
    "order": "Rows are sorted by document, chunks by document and index.",
    "shard": "A document is in the shard of its id.",
    "null": "Columns of a chunk that always hold something do.",
    "chunk_id": "A chunk's id follows from document id, chunker, text and ordinal.",
    "unique": "No two chunks have one id.",
    "chunk_index": "Indexes of a document run from 0 without a gap.",
    "chunk_count": "A chunk knows how many chunks its document has.",
    "chunker_hash": "A row has the fingerprint of the chunker of its partition.",
    "parent": "A parent is an earlier chunk of the same document.",
    "blank": "No chunk is blank.",
    "span": "Spans lie in the document, are as long as the text, and starts and ends ascend.",
    "overlap": "`overlap_chars` is what the chunk before holds too.",
    "lines": "Line numbers ascend, and are those of the document.",
    "token_count": "Tokens counted again are as many.",
    "budget": "A chunk is within the budget or marked.",
    "ledger": "The ledger's counts and states are those of the chunks, and of the document.",
    "dead_letter": "A failed document has a dead letter, and the reverse.",
    "text_sha256": "The document's text has the digest that the ledger says.",
    "slice": "A chunk's text is the slice of the document's.",
    "byte_span": "Byte offsets are those of the code points.",
    "coverage": "Every character is in some chunk, white space apart.",
    "unlisted": "Every document of the inputs is in the ledger.",
    "unread": "Every document of the ledger is in the inputs.",
}
"""What is checked: laws of chunks and promises of the table, by the name that a fault gives them."""

_KEPT = 100
_BATCH_ROWS = 1024
_READ_BYTES = 1 << 20
_DATA = ("chunks", "documents", "dead_letters")
_SHARD = re.compile(r"/part-(\d+)-of-\d+-")
_BREAK = re.compile("\r\n?|\n")
_UNREADABLE = (OSError, ValueError, LookupError, pa.ArrowException)


# What is found.


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it must be.

    Args:
        file: The file, relative to the output; the source, for a document that the table lacks.
        row: Position of the row in that file, from 0; None if it is the whole file.
        document_id: The document; None if it is the whole file.
        check: One of `CHECKS`.
        message: What is wrong.
    """

    file: str
    row: int | None
    document_id: str | None
    check: str
    message: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        document = "" if self.document_id is None else f", document {self.document_id!r}"
        return f"{self.check}: {self.file}{row}{document}: {self.message}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification looked at and what it found.

    Args:
        output: Root of the table.
        seq: Number of its last commit.
        checked: Number of `files`, `rows`, `documents` (rows of the ledger), `chunks` and `bytes` looked at.
        documents_compared: Rows of the ledger whose document was at hand, from the inputs or the ledger.
        documents_recut: Those of them whose text is the one that was cut, and was cut again at every span.
        documents_changed: Those of them whose source is not what it was; that breaks no law.
        changed: Ids of the first changed documents.
        not_recounted: Chunks whose tokens were not counted again, by the tokenizer that is not at hand.
        fault_counts: Faults by check.
        faults: The first faults.
    """

    output: str
    seq: int
    checked: Mapping[str, int]
    documents_compared: int = 0
    documents_recut: int = 0
    documents_changed: int = 0
    changed: Sequence[str] = ()
    not_recounted: Mapping[str, int] = field(default_factory=dict)
    fault_counts: Mapping[str, int] = field(default_factory=dict)
    faults: Sequence[Fault] = ()

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not self.fault_counts

    def to_json(self) -> dict[str, Any]:
        """The report as JSON can hold it."""
        return {"ok": self.ok, **asdict(self)}

    def summary(self) -> str:
        """The report as lines of plain text."""
        return "\n".join(f"{name:<11}{text}" for name, text in self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        checked = self.checked
        yield "table", f"{self.output}, commit {self.seq}"
        yield "files", f"{checked['files']:,}, {checked['bytes'] / 1e6:,.1f} MB, {checked['rows']:,} rows"
        yield "chunks", f"{checked['chunks']:,}"
        for name, chunks in self.not_recounted.items():
            yield "", f"{chunks:,} not recounted: the tokenizer {name} is not at hand"
        compared = f"{self.documents_compared:,} compared with their text, {self.documents_recut:,} cut again"
        yield "documents", f"{checked['documents']:,}: {compared}"
        if self.documents_changed:
            more = ", ..." if self.documents_changed > len(self.changed) else ""
            yield "changed", f"{self.documents_changed:,}: {', '.join(map(repr, self.changed))}{more}"
        counts = sorted(self.fault_counts.items(), key=lambda item: (-item[1], item[0]))
        yield "faults", ", ".join(f"{times:,} {check}" for check, times in counts) or "none"
        yield from (("", str(fault)) for fault in self.faults)


# What is read. Columns of the files have the names of the fields.


class _Chunk(NamedTuple):
    """A chunk, with the file, the row and the partition value of its chunker. Only the last two may be null."""

    file: str
    row: int
    chunker: str
    document_id: str
    chunk_index: int
    chunk_id: str
    chunk_count: int
    text: str
    token_count: int
    start_char: int
    end_char: int
    start_byte: int
    end_byte: int
    overlap_chars: int
    line_start: int
    line_end: int
    is_derived: bool
    over_budget: bool
    chunker_hash: str
    parent_id: str | None
    spans: Sequence[Mapping[str, int]] | None

    @property
    def place(self) -> tuple[str, int]:
        return self.document_id, self.chunk_index

    @property
    def pieces(self) -> Sequence[Span]:
        if self.spans is None:
            return ((self.start_char, self.end_char),)
        return [(span["start"], span["end"]) for span in self.spans]


class _Entry(NamedTuple):
    """A row of the ledger."""

    file: str
    row: int
    chunker: str
    document_id: str
    chunker_hash: str | None
    source_name: str | None
    source_uri: str | None
    source_row: int | None
    content_sha256: str | None
    text_sha256: str | None
    parser_name: str | None
    parser_version: str | None
    status: str
    reason: str | None
    chunk_count: int | None
    token_count: int | None
    over_budget_count: int | None
    char_count: int | None
    byte_count: int | None
    lost_chars: int | None
    text: str | None

    @property
    def place(self) -> tuple[str, int]:
        return self.document_id, self.row


class _Letter(NamedTuple):
    """A dead letter."""

    file: str
    row: int
    chunker: str
    document_id: str
    reason: str

    @property
    def place(self) -> tuple[str, int]:
        return self.document_id, self.row


class _Source(NamedTuple):
    """A document that was read again; without text if it could not be."""

    source_uri: str
    source_row: int | None
    document_id: str
    content_sha256: str | None
    parser_name: str | None
    parser_version: str | None
    text: str | None


_Row = _Chunk | _Entry | _Letter
_Item = _Row | _Source
_KINDS: Mapping[str, type[_Row]] = {"chunks": _Chunk, "documents": _Entry, "dead_letters": _Letter}
_Kind = TypeVar("_Kind", bound=_Item)


def _of(kind: type[_Kind], items: Iterable[_Item]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


def _fault(row: _Row, check: str, message: str) -> Fault:
    return Fault(row.file, row.row, row.document_id, check, message)


def verify(
    output: str,
    inputs: Sequence[SourceFile] = (),
    read: ReadSettings | None = None,
    parse: ParseSettings | None = None,
    tokenizers: Iterable[Tokenizer] = (),
) -> VerifyReport:
    """Prove a committed table again.

    Without inputs a document is compared only if the ledger keeps its text.

    Args:
        output: Root of the table.
        inputs: All files that the documents of the source `read.source_name` came from.
        read: How they were read.
        parse: How they were parsed.
        tokenizers: Tokenizers that no name can tell, such as those of Hugging Face.

    Raises:
        ConfigError: If `output` is no place where a table can be.
    """
    proof = _Proof(output, tokenizers)
    with TemporaryDirectory(prefix="chunkmill-verify-") as folder:
        proof.run(inputs, read or ReadSettings(), parse or ParseSettings(), folder)
    return proof.report()


class _Proof:
    """A verification under way.

    Args:
        output: Root of the table.
        tokenizers: Tokenizers that no name can tell.
    """

    def __init__(self, output: str, tokenizers: Iterable[Tokenizer]) -> None:
        self._output = public_uri(output)
        self._fs, root = filesystem(output, setting="output")
        self._fs.invalidate_cache()
        self._root = root.rstrip("/")
        self._tokenizers: dict[tuple[str, str], Tokenizer | None] = {
            (tokenizer.name, tokenizer.vocabulary_digest): tokenizer for tokenizer in tokenizers
        }
        self._files: dict[str, FileEntry] = {}
        self._seq = 0
        self._chunkers: dict[str, ChunkerRecord] = {}
        # Once a file of a shard is lost, documents that lack something say nothing new.
        self._whole = True

        self._checked = Counter({name: 0 for name in ("files", "rows", "documents", "chunks", "bytes")})
        self._compared: Counter[str] = Counter()
        self._changed: list[str] = []
        self._not_recounted: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._faults: list[Fault] = []

    def report(self) -> VerifyReport:
        return VerifyReport(
            output=self._output,
            seq=self._seq,
            checked=dict(self._checked),
            documents_compared=self._compared["compared"],
            documents_recut=self._compared["recut"],
            documents_changed=self._compared["changed"],
            changed=self._changed,
            not_recounted=dict(self._not_recounted),
            fault_counts=dict(self._counts),
            faults=self._faults,
        )

    def run(
        self, inputs: Sequence[SourceFile], read: ReadSettings, parse: ParseSettings, folder: str
    ) -> None:
        try:
            table = Table(self._output)
        except CommitError as error:
            self._note_file("control/commits", "manifest", str(error))
            return
        if not table.last:
            self._note_file("control/commits", "manifest", "there is no commit, so there is no table")
            return
        self._files, self._seq = table.files, table.seq
        self._check_control()
        self._check_chunkers(table.last["chunkers"])

        shelf = _Shelf(folder, table.last["shards"])
        if inputs:
            shelf.fill(_documents(inputs, read, parse))
        files = defaultdict(list)
        for path, entry in sorted(self._files.items()):
            match = _SHARD.search(path)
            files[int(match[1]) if match else 0].append(entry)
        for shard in sorted({*files, *shelf.shards}):
            self._check_shard(shard, shelf, files[shard], read.source_name if inputs else None)

    def _note(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._counts[fault.check] += 1
            if len(self._faults) < _KEPT:
                self._faults.append(fault)

    def _note_file(self, path: str, check: str, message: str) -> None:
        self._note([Fault(path, None, None, check, message)])

    # The files.

    def _check_control(self) -> None:
        """What must be there beside the data files, and what must not."""
        try:
            latest = json.loads(self._fs.cat_file(f"{self._root}/control/LATEST"))["seq"]
        except (FileNotFoundError, ValueError, LookupError, TypeError) as error:
            self._note_file("control/LATEST", "manifest", f"does not name a commit: {error!r}")
        else:
            if latest != self._seq:
                self._note_file("control/LATEST", "manifest", f"names commit {latest}, the last is {self._seq}")
        for folder in _DATA:
            for path in self._found(folder):
                if path not in self._files:
                    self._note_file(path, "foreign", "no manifest names it")
        for path in self._found("control/staging"):
            self._note_file(path, "staging", "was left by a run; it is in no table")

    def _found(self, folder: str) -> list[str]:
        paths: list[str] = self._fs.find(f"{self._root}/{folder}")
        return sorted(path.removeprefix(f"{self._root}/") for path in paths)

    def _check_chunkers(self, told: Mapping[str, Mapping[str, object]]) -> None:
        """Read `chunkers/`, and compare it with the chunkers that the manifest tells of."""
        names = [name for name in ChunkerRecord.__slots__ if name != "hash"]
        for path in self._found("chunkers"):
            try:
                with self._fs.open(f"{self._root}/{path}") as handle:
                    rows = pq.ParquetFile(handle).read().cast(CHUNKERS).to_pylist()
            except _UNREADABLE as error:
                self._note_unreadable(path, error)
                continue
            for row in rows:
                given = {name: row["chunker_" + name if "chunker_" + name in row else name] for name in names}
                record = ChunkerRecord(**given, hash=row["chunker_hash"])
                self._chunkers[chunker_value(record)] = record
        for value, facts in told.items():
            record = self._chunkers.get(value)
            if record is None or asdict(record) != facts:
                what = "differs from what the manifest says of it" if record else "is missing"
                self._note_file(f"chunkers/{value}.parquet", "chunkers", f"the chunker {what}")

    def _check_file(self, entry: FileEntry) -> bool:
        """Whether the rows of a file can be read."""
        path = f"{self._root}/{entry.path}"
        note = partial(self._note_file, entry.path)
        try:
            size, digest = 0, sha256()
            with self._fs.open(path) as handle:
                while data := handle.read(_READ_BYTES):
                    size += len(data)
                    digest.update(data)
                self._checked.update(files=1, bytes=size)
                if size != entry.bytes:
                    note("bytes", f"has {size} bytes, the manifest says {entry.bytes}")
                elif digest.hexdigest() != entry.sha256:
                    note("sha256", f"has SHA-256 {digest.hexdigest()}, the manifest says {entry.sha256}")
                handle.seek(0)
                table = pq.ParquetFile(handle)
                rows, schema = table.metadata.num_rows, table.schema_arrow.remove_metadata()
        except FileNotFoundError:
            note("missing", "the manifest names it, and it is not there")
            return False
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)
            return False
        if rows != entry.rows:
            note("rows", f"has {rows} rows, the manifest says {entry.rows}")
        if not schema.equals(SCHEMAS[entry.kind]):
            note("schema", f"its schema is not that of {entry.kind}; its rows are not looked at")
            return False
        value = _chunker_of(entry.path)
        if entry.kind == "chunks" and rows and value not in self._chunkers:
            note("chunkers", f"the chunker {value} is not in chunkers/")
        return True

    def _note_unreadable(self, path: str, error: Exception) -> None:
        if isinstance(error, OSError) and is_transient(error):
            raise error
        self._note_file(path, "unreadable", f"cannot be read: {error}")

    def _rows(self, entry: FileEntry) -> Iterator[_Row]:
        """The rows of a file; one that is out of order, or lacks what it must hold, is noted."""
        kind, chunker = _KINDS[entry.kind], _chunker_of(entry.path)
        names = list(kind._fields[3:])
        place: tuple[str, int] = ("", -1)
        number = count()
        try:
            with self._fs.open(f"{self._root}/{entry.path}") as handle:
                table = pq.ParquetFile(handle, page_checksum_verification=True)
                for batch in table.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
                    columns = [batch.column(name).to_pylist() for name in names]
                    for row in map(kind._make, zip(repeat(entry.path), number, repeat(chunker), *columns)):
                        self._checked.update({"rows": 1, entry.kind: 1})
                        if isinstance(row, _Chunk) and None in row[:-2]:
                            self._note([_fault(row, "null", f"{row._fields[row.index(None)]} is null")])
                            self._whole = False
                            continue
                        if row.place <= place:
                            self._note([_fault(row, "order", f"{row.place} comes after {place}")])
                        place = row.place
                        yield row
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)
            self._whole = False

    # The documents.

    def _check_shard(
        self, shard: int, shelf: _Shelf, files: Iterable[FileEntry], source_name: str | None
    ) -> None:
        readable = [(entry, self._check_file(entry)) for entry in files]
        self._whole = all(sound for _, sound in readable)
        streams: list[Iterator[_Item]] = [self._rows(entry) for entry, sound in readable if sound]
        items = merge(*streams, shelf.documents(shard), key=attrgetter("document_id"))
        for document_id, group in groupby(items, attrgetter("document_id")):
            found = list(group)
            rows = [item for item in found if not isinstance(item, _Source)]
            if rows and (right := shard_of(document_id, shelf.number)) != shard:
                self._note([_fault(rows[0], "shard", f"is in shard {shard}, its id belongs to {right}")])
            given = None
            if source_name is not None:
                given = {(item.source_uri, item.source_row): item for item in _of(_Source, found)}
                self._note(_input_faults(given, _of(_Entry, rows), source_name, self._whole))
            for chunker in sorted({row.chunker for row in rows}):
                cut = [row for row in rows if row.chunker == chunker]
                self._check_cut(chunker, _of(_Chunk, cut), _of(_Entry, cut), _of(_Letter, cut), given or {})

    def _check_cut(
        self,
        chunker: str,
        chunks: list[_Chunk],
        entries: list[_Entry],
        letters: list[_Letter],
        given: Mapping[tuple[str | None, int | None], _Source],
    ) -> None:
        """What one chunker made of one document."""
        chunks.sort(key=attrgetter("chunk_index"))
        standing = [entry for entry in entries if entry.status != "failed"]
        entry = standing[0] if standing else None
        record = self._chunkers.get(chunker)
        if self._whole:
            self._note(_index_faults(chunks))
            self._note(_ledger_faults(chunks, standing))
            self._note(_letter_faults(entries, letters))
        self._note(_id_faults(chunks, record))
        self._note(_span_faults(chunks, entry))
        if record:
            self._note(_hash_faults([*chunks, *entries], record))
            self._note(_token_faults(chunks, record, self._counter(record, len(chunks))))
        if entry and (text := self._text_of(entry, given)) is not None:
            self._compared["recut"] += 1
            self._note(_slice_faults(chunks, text))
            if self._whole and entry.status != "skipped":
                self._note(_coverage_faults(chunks, entry, text))

    def _counter(self, record: ChunkerRecord, chunks: int) -> Tokenizer | None:
        """The tokenizer of a chunker, or None, which is noted for the number of chunks."""
        name, digest = key = record.tokenizer, record.vocabulary_digest
        if key not in self._tokenizers:
            self._tokenizers[key] = None
            # Files are for the caller to name: a table must not make its reader open any.
            if not name.endswith((".json", ".tiktoken")):
                try:
                    found = get_tokenizer(name)
                    self._tokenizers[key] = found if found.vocabulary_digest == digest else None
                except ConfigError:
                    pass
        if self._tokenizers[key] is None and chunks:
            self._not_recounted[name] += chunks
        return self._tokenizers[key]

    def _text_of(
        self, entry: _Entry, given: Mapping[tuple[str | None, int | None], _Source]
    ) -> str | None:
        """The text that was cut, if it is at hand; what is wrong with it is noted."""
        source = given.get((entry.source_uri, entry.source_row))
        if source is None and entry.text is None:
            return None
        self._compared["compared"] += 1
        texts = {"ledger": entry.text}
        if source and (source.text is None or source.content_sha256 != entry.content_sha256):
            self._note_changed(entry)
        elif source:
            texts["source"] = source.text
        found = None
        for place, text in texts.items():
            if text is None:
                continue
            if sha256(text.encode()).hexdigest() == entry.text_sha256:
                found = text
            elif source and place == "source" and source[4:6] != (entry.parser_name, entry.parser_version):
                self._note_changed(entry)
            else:
                hint = "; was it read with other settings?" if place == "source" else ""
                message = f"the text in the {place} is not the text that was cut{hint}"
                self._note([_fault(entry, "text_sha256", message)])
        return found

    def _note_changed(self, entry: _Entry) -> None:
        self._compared["changed"] += 1
        if len(self._changed) < _KEPT:
            self._changed.append(entry.document_id)


def _chunker_of(path: str) -> str:
    return path.split("/")[1].partition("=")[2]


# The laws, each for what one chunker made of one document.


def _index_faults(chunks: Sequence[_Chunk]) -> Iterator[Fault]:
    for index, chunk in enumerate(chunks):
        if chunk.chunk_index != index:
            yield _fault(chunk, "chunk_index", f"has index {chunk.chunk_index} in the place of {index}")
            break
    for chunk in chunks:
        if chunk.chunk_count != len(chunks):
            yield _fault(chunk, "chunk_count", f"says {chunk.chunk_count}, there are {len(chunks)}")
            break


def _id_faults(chunks: Sequence[_Chunk], record: ChunkerRecord | None) -> Iterator[Fault]:
    """Faults of ids.

    Two documents or chunkers cannot share an id that follows from both, so only chunks of one are compared.
    """
    seen: set[str] = set()
    ordinals: Counter[str] = Counter()
    for chunk in chunks:
        chunker_hash = record.hash if record else chunk.chunker_hash
        ordinal = ordinals[chunk.text]
        ordinals[chunk.text] += 1
        if chunk.chunk_id in seen:
            yield _fault(chunk, "unique", f"an earlier chunk has the id {chunk.chunk_id}")
        elif chunk.chunk_id != chunk_id(chunk.document_id, chunker_hash, chunk.text.encode(), ordinal):
            yield _fault(chunk, "chunk_id", f"the id {chunk.chunk_id} does not follow from the text")
        if chunk.parent_id is not None and chunk.parent_id not in seen:
            yield _fault(chunk, "parent", f"the parent {chunk.parent_id} is no earlier chunk of the document")
        seen.add(chunk.chunk_id)


def _hash_faults(rows: Iterable[_Chunk | _Entry], record: ChunkerRecord) -> Iterator[Fault]:
    for row in rows:
        if row.chunker_hash != record.hash:
            yield _fault(row, "chunker_hash", f"is {row.chunker_hash}, that of the partition is {record.hash}")


def _token_faults(
    chunks: Sequence[_Chunk], record: ChunkerRecord, counter: Tokenizer | None
) -> Iterator[Fault]:
    counts = counter.count_many([chunk.text for chunk in chunks]) if counter else repeat(None)
    for chunk, tokens in zip(chunks, counts, strict=False):
        if tokens is not None and tokens != chunk.token_count:
            yield _fault(chunk, "token_count", f"says {chunk.token_count} tokens, there are {tokens}")
        if chunk.token_count > record.chunk_size and not chunk.over_budget:
            message = f"{chunk.token_count} tokens are more than {record.chunk_size}, and it is not marked"
            yield _fault(chunk, "budget", message)


def _span_faults(chunks: Sequence[_Chunk], entry: _Entry | None) -> Iterator[Fault]:
    before = None
    for chunk in chunks:
        if not chunk.text.strip():
            yield _fault(chunk, "blank", "the chunk is blank")
        if message := _wrong_span(chunk) or _wrong_place(chunk, before, entry):
            yield _fault(chunk, "span", message)
        if before and not (before.is_derived or chunk.is_derived):
            shared = _shared(before.pieces, chunk.pieces)
            if chunk.overlap_chars != shared:
                yield _fault(chunk, "overlap", f"says {chunk.overlap_chars} characters, it shares {shared}")
        elif not before and chunk.overlap_chars:
            yield _fault(chunk, "overlap", f"says {chunk.overlap_chars} characters, and no chunk is before it")
        first, last = (before.line_start, before.line_end) if before else (1, 1)
        if not (first <= chunk.line_start <= chunk.line_end and last <= chunk.line_end):
            lines = f"{chunk.line_start} to {chunk.line_end}"
            yield _fault(chunk, "lines", f"lines {lines} follow lines {first} to {last}")
        before = chunk


def _wrong_span(chunk: _Chunk) -> str | None:
    """What is wrong with the span of a chunk, as far as the chunk alone can tell."""
    edges = list(chain.from_iterable(chunk.pieces))
    hull = [chunk.start_char, chunk.end_char]
    if any(start >= end for start, end in chunk.pieces) or edges != sorted(edges):
        return f"the spans {chunk.pieces} are empty or out of order"
    if [*edges[:1], *edges[-1:]] != hull:
        return f"the spans {chunk.pieces} do not reach from {chunk.start_char} to {chunk.end_char}"
    if chunk.start_byte >= chunk.end_byte:
        return f"the bytes from {chunk.start_byte} to {chunk.end_byte} are none"
    if chunk.is_derived:
        return None
    chars = sum(end - start for start, end in chunk.pieces)
    if chars != len(chunk.text):
        return f"the span has {chars} characters, the text {len(chunk.text)}"
    size, held = chunk.end_byte - chunk.start_byte, len(chunk.text.encode())
    if chunk.spans is None and size != held:
        return f"the span has {size} bytes, the text {held}"
    return None


def _wrong_place(chunk: _Chunk, before: _Chunk | None, entry: _Entry | None) -> str | None:
    """What is wrong with the span of a chunk, beside the chunk before it and in the document."""
    if min(chunk.start_char, chunk.start_byte) < 0:
        return "the span begins before the document"
    if entry and (chunk.end_char > (entry.char_count or 0) or chunk.end_byte > (entry.byte_count or 0)):
        return f"the span ends after the document's {entry.char_count} characters, {entry.byte_count} bytes"
    edges = attrgetter("start_char", "end_char", "start_byte", "end_byte")
    if before and not all(map(int.__lt__, edges(before), edges(chunk))):
        return f"the span {edges(chunk)} does not come after {edges(before)}"
    return None


def _shared(before: Sequence[Span], spans: Sequence[Span]) -> int:
    """Characters that lie in spans of both."""
    return sum(max(0, min(e, f) - max(s, b)) for s, e in spans for b, f in before if b < e and s < f)


def _ledger_faults(chunks: Sequence[_Chunk], standing: Sequence[_Entry]) -> Iterator[Fault]:
    for entry in standing[1:]:
        yield _fault(entry, "ledger", f"is listed {len(standing)} times for one chunker")
    if not standing:
        for chunk in chunks[:1]:
            yield _fault(chunk, "ledger", f"{len(chunks)} chunks of a document that the ledger does not list")
        return
    entry = standing[0]
    found = (len(chunks), sum(c.token_count for c in chunks), sum(c.over_budget for c in chunks))
    told = (entry.chunk_count, entry.token_count, entry.over_budget_count)
    if found != told:
        names = "chunks, tokens and chunks over the budget"
        yield _fault(entry, "ledger", f"says that there are {told} {names}; there are {found}")
    if (entry.status == "ok") != bool(chunks):
        yield _fault(entry, "ledger", f"has status {entry.status} and {len(chunks)} chunks")
    if entry.lost_chars:
        yield _fault(entry, "coverage", f"the ledger says that {entry.lost_chars} characters are in no chunk")


def _letter_faults(entries: Sequence[_Entry], letters: Sequence[_Letter]) -> Iterator[Fault]:
    failed = [entry for entry in entries if entry.status == "failed"]
    rows: list[tuple[_Row, str]] = [(row, "no dead letter") for row in failed]
    rows += [(row, "no failed row of the ledger") for row in letters]
    listed, written = Counter(row.reason for row in failed), Counter(row.reason for row in letters)
    for row, lack in rows:
        if isinstance(row, (_Entry, _Letter)) and listed[row.reason] != written[row.reason]:
            yield _fault(row, "dead_letter", f"failed for {row.reason}, and there is {lack} for it")
            break


def _slice_faults(chunks: Sequence[_Chunk], text: str) -> Iterator[Fault]:
    """Faults of chunks against the text that they were cut from."""
    breaks = array("q", (found.end() for found in _BREAK.finditer(text)))
    at = byte = 0
    for chunk in chunks:
        start, end = chunk.start_char, chunk.end_char
        if not chunk.is_derived and chunk.text != "".join(text[s:e] for s, e in chunk.pieces):
            yield _fault(chunk, "slice", f"the text is not that of {chunk.pieces} in the document")
        lines = (1 + bisect_right(breaks, start), 1 + bisect_right(breaks, end - 1))
        if lines != (chunk.line_start, chunk.line_end):
            said = (chunk.line_start, chunk.line_end)
            yield _fault(chunk, "lines", f"says that the lines are {said}; they are {lines}")
        if start < at:
            continue  # a fault of the span, which is told
        byte += len(text[at:start].encode())
        at = start
        held = (byte, byte + len(text[start:end].encode()))
        if held != (chunk.start_byte, chunk.end_byte):
            said = (chunk.start_byte, chunk.end_byte)
            yield _fault(chunk, "byte_span", f"says that the bytes are {said}; they are {held}")


def _coverage_faults(chunks: Sequence[_Chunk], entry: _Entry, text: str) -> Iterator[Fault]:
    size = (len(text), len(text.encode()))
    if size != (entry.char_count, entry.byte_count):
        said = (entry.char_count, entry.byte_count)
        yield _fault(entry, "ledger", f"says that characters and bytes are {said}; they are {size}")
    covered = lost = 0
    first = None
    for start, end in sorted([*chain.from_iterable(chunk.pieces for chunk in chunks), (len(text), len(text))]):
        if start > covered and (words := text[covered:start].split()):
            lost += sum(map(len, words))
            first = first or f"the first is {words[0][:40]!r} between {covered} and {start}"
        covered = max(covered, end)
    if lost != (entry.lost_chars or 0) or (lost and not entry.lost_chars):
        said = f"the ledger says {entry.lost_chars}; {first}"
        yield _fault(entry, "coverage", f"{lost} characters are in no chunk, {said}")


# The inputs.


def _input_faults(
    given: Mapping[tuple[str | None, int | None], _Source],
    entries: Iterable[_Entry],
    source_name: str,
    whole: bool,
) -> Iterator[Fault]:
    listed = {
        (entry.source_uri, entry.source_row): entry for entry in entries if entry.source_name == source_name
    }
    for place, source in given.items():
        if whole and place not in listed:
            message = "the document is not in the ledger"
            yield Fault(source.source_uri, source.source_row, source.document_id, "unlisted", message)
    for place, entry in listed.items():
        if place not in given:
            row = "" if entry.source_row is None else f"row {entry.source_row} of "
            yield _fault(entry, "unread", f"the inputs do not hold {row}{entry.source_uri}")


def _documents(
    inputs: Iterable[SourceFile], read: ReadSettings, parse: ParseSettings
) -> Iterator[Document | DeadLetter]:
    """The documents of the inputs as the job reads and parses them."""
    files = list(inputs)
    tables = (sources.plan(file, read) for file in files if file.format == "parquet")
    objects = sources.plan_objects((file for file in files if file.format == "object"), read)
    for task in chain(chain.from_iterable(tables), objects):
        for item in [task] if isinstance(task, DeadLetter) else sources.read(task, read):
            if isinstance(item, DeadLetter):
                yield item
                continue
            try:
                yield parsers.parse(item, parse)
            except ParseError as error:
                yield DeadLetter(item.document_id, error.stage, error.reason, error.message, item.source)


class _Shelf:
    """Documents on disk, by shard, since they come in another order than the table has.

    Args:
        folder: Folder for its files.
        number: Shards of the table.
    """

    def __init__(self, folder: str, number: int) -> None:
        self.number = number
        self._folder = Path(folder)
        self._sizes: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def shards(self) -> Iterable[int]:
        """Shards of the documents."""
        return self._sizes.keys()

    def fill(self, documents: Iterable[Document | DeadLetter]) -> None:
        """Take the documents."""
        nobody = ChunkerRecord("", 0, "", "{}", "", "", 1)
        builder = PackBuilder(Run("verify", 0, shards=self.number, keep_text=True))
        for item in documents:
            is_letter = isinstance(item, DeadLetter)
            self._put(builder.add(item if is_letter else DocumentChunks(item, (), "ok", nobody)))
        self._put(builder.flush())

    def _put(self, packs: Iterable[Pack]) -> None:
        for shard, pack in packs:
            with (self._folder / str(shard)).open("ab") as file:
                file.write(pack)
            self._sizes[shard].append(len(pack))

    def documents(self, shard: int) -> Iterator[_Source]:
        """The documents of a shard, by id."""
        if shard not in self._sizes:
            return
        with (self._folder / str(shard)).open("rb") as file:
            kinds = read_packs(file.read(size) for size in self._sizes[shard])
        names = list(_Source._fields)
        tables = [
            table.select([name for name in names if name in table.column_names])
            for kind, table in kinds.items()
            if kind != "chunks"
        ]
        rows = pa.concat_tables(tables, promote_options="default").select(names).sort_by("document_id")
        for batch in rows.to_batches(max_chunksize=64):
            yield from map(_Source._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))
