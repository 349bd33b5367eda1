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
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from heapq import merge
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from transforms import parsers, sources
from transforms.errors import CommitError, ConfigError, ParseError
from transforms.fingerprint import chunk_id, text_digest
from transforms.packs import Pack, PackBuilder, read_packs, shard_of
from transforms.parsers import ParseSettings
from transforms.partitions import column_of, folder_key, folder_values, partition_values
from transforms.paths import FileEntry, chunker_value, slug
from transforms.provenance import ChunkerRecord, Run
from transforms.records import DeadLetter, DocumentChunks, Span
from transforms.schemas import CHUNKERS, SCHEMAS
from transforms.sources import ReadSettings, SourceFile
from transforms.storage import filesystem, is_transient, public_uri
from transforms.table import Table
from transforms.tokenizers import Tokenizer, get_tokenizer

CHECKS: Mapping[str, str] = {
    "manifest": "The manifests follow each other, and LATEST names the last.",
    "missing": "A file that a manifest names is there.",
    "bytes": "A file has the size that the manifest says.",
    "sha256": "A file has the digest that the manifest says.",
    "unreadable": "A file can be read.",
    "rows": "A file has as many rows as the manifest says.",
    "schema": "A file has the schema of its kind.",
    "foreign": "No data file is there that no manifest names.",
    "staging": "No staged file is left, but for waves and lists of what to retire of a run that may go on.",
    "chunkers": "The chunker that a file tells of is in `chunkers/`.",
    "order": "Rows are sorted by document, chunks by document and index.",
    "shard": "A document is in the shard of its id.",
    "partition": "A chunk lies in the folders of its source and of the keys of the table.",
    "null": "Columns of a chunk that always hold something do.",
    "chunk_id": "A chunk's id follows from document id, chunker, text and ordinal.",
    "unique": "No two chunks have one id.",
    "chunk_index": "Indexes of a document run from 0 without a gap.",
    "chunk_count": "A chunk says how many chunks its document has.",
    "chunker_hash": "A row has the fingerprint of the chunker of its partition.",
    "parent": "A parent is an earlier chunk of the same document.",
    "blank": "No chunk is blank.",
    "span": "Spans lie in the document and are as long as the text; starts and ends ascend.",
    "byte_span": "Byte offsets are those of the code points.",
    "overlap": "The overlap is what the chunk before holds too.",
    "lines": "Line numbers ascend and are those of the document.",
    "token_count": "Tokens, counted again, are as many.",
    "budget": "A chunk is within the budget or marked.",
    "changes": "The chunks that came with some commit, less those that left, are those that are there.",
    "ledger": "Counts and states of the ledger are those of the chunks and of the text.",
    "dead_letter": "A failed document has a dead letter, and the reverse.",
    "text_sha256": "The text of a document has the digest that the ledger says.",
    "slice": "The text of a chunk is a slice of the document's.",
    "coverage": "Every character, white space apart, is in a chunk.",
    "unlisted": "Every document of the inputs is in the ledger.",
    "unread": "Every document of the ledger is in the inputs.",
}
"""The checks, by the names that faults give them."""

_KEPT = 100
_BATCH_ROWS = 1024
_READ_BYTES = 1 << 20
_PART = re.compile(r"/chunker=([^/]+)/.*/part-(\d+)-of-")
_ABSENT = ("failed", "deleted")
_LEAVE_IDS_UNSURE = {"manifest", "missing", "unreadable", "rows", "schema", "null", "chunk_id", "unique"}
_LINE_BREAK = re.compile("\r\n?|\n")
_UNREADABLE = (OSError, ValueError, LookupError, pa.ArrowException)


# What is found.


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it must be.

    Args:
        file: The file, relative to the output; the source of a document that the table lacks.
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
        row = "" if self.row is None else f", row {self.row}"
        document = "" if self.document_id is None else f", document {self.document_id!r}"
        return f"{self.check}: {self.file}{row}{document}: {self.message}"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification looked at and what it found.

    Args:
        output: Root of the table.
        seq: Number of its last commit; 0 if there is none.
        checked: How many `files`, `bytes`, `rows`, and rows of each kind such as `chunks` and `documents` (the
            ledger) were looked at.
        documents_compared: Rows of the ledger whose document was at hand, from the inputs or the ledger.
        documents_recut: Those of them with the very text that was cut: it was cut again at every span.
        documents_changed: Those of them whose source is not what it was, which breaks no law.
        changed: Ids of the first of those.
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
        compared = f"{self.documents_compared:,} compared with their text, {self.documents_recut:,} cut again"
        yield "documents", f"{checked['documents']:,}: {compared}"
        yield "chunks", f"{checked['chunks']:,}"
        for name, chunks in self.not_recounted.items():
            yield "", f"{chunks:,} not recounted: the tokenizer {name} is not at hand"
        if self.changed:
            more = ", ..." if self.documents_changed > len(self.changed) else ""
            yield "changed", f"{self.documents_changed:,}: {', '.join(map(repr, self.changed))}{more}"
        faults = sorted(self.fault_counts.items(), key=lambda item: (-item[1], item[0]))
        yield "faults", ", ".join(f"{times:,} {check}" for check, times in faults) or "none"
        for fault in self.faults:
            yield "", str(fault)


def verify(
    output: str,
    inputs: Sequence[SourceFile] = (),
    read: ReadSettings | None = None,
    parse: ParseSettings | None = None,
    tokenizers: Iterable[Tokenizer] = (),
) -> VerifyReport:
    """Prove a committed table once more.

    Documents are compared with their texts if inputs are given or the ledger keeps the texts. Inputs take
    temporary disk space for all of their text, and memory for that of one shard.

    Args:
        output: Root of the table.
        inputs: All files that the documents of the source `read.source_name` came from.
        read: How they were read.
        parse: How they were parsed.
        tokenizers: Tokenizers that cannot be had by their name, such as those of Hugging Face.

    Raises:
        ConfigError: If `output` is no place that can hold a table.
    """
    proof = _Proof(output, tokenizers)
    with TemporaryDirectory(prefix="chunkmill-verify-") as folder:
        proof.run(inputs, read or ReadSettings(), parse or ParseSettings(), Path(folder))
    return proof.report()


# What is read: the columns of the files have the names of the fields.


class _Chunk(NamedTuple):
    """A chunk and where it stands; only the last two fields may be null."""

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
    def pieces(self) -> Sequence[Span]:
        if self.spans is None:
            return [(self.start_char, self.end_char)]
        return [(span["start"], span["end"]) for span in self.spans]


class _Entry(NamedTuple):
    """A row of the ledger and where it stands."""

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
    removed_chars: int | None
    text: str | None


class _Letter(NamedTuple):
    """A dead letter and where it stands."""

    file: str
    row: int
    chunker: str
    document_id: str
    reason: str


class _Again(NamedTuple):
    """A document that was read again; without text if it could not be."""

    document_id: str
    source_uri: str
    source_row: int | None
    content_sha256: str | None
    parser_name: str | None
    parser_version: str | None
    text: str | None


_Row = _Chunk | _Entry | _Letter
_Place = tuple[str | None, int | None]
_KINDS: Mapping[str, type[_Row]] = {"chunks": _Chunk, "documents": _Entry, "dead_letters": _Letter}
_Kind = TypeVar("_Kind", _Chunk, _Entry, _Letter, _Again)


def _of(kind: type[_Kind], items: Iterable[_Row | _Again]) -> list[_Kind]:
    return [item for item in items if isinstance(item, kind)]


def _fault(row: _Row, check: str, message: str) -> Fault:
    return Fault(row.file, row.row, row.document_id, check, message)


class _Proof:
    """A verification under way.

    Args:
        output: Root of the table.
        tokenizers: Tokenizers that cannot be had by their name.
    """

    def __init__(self, output: str, tokenizers: Iterable[Tokenizer]) -> None:
        self._output = public_uri(output)
        self._fs, root = filesystem(output, setting="output")
        self._fs.invalidate_cache()
        self._root = root.rstrip("/")
        self._tokenizers: dict[tuple[str, str], Tokenizer | None] = {
            (tokenizer.name, tokenizer.vocabulary_digest): tokenizer for tokenizer in tokenizers
        }
        self._chunkers: dict[str, ChunkerRecord] = {}
        # If a file of a shard is lost or out of order, that its documents lack something is no news.
        self._complete = True

        # Number and sum of the hashes of the ids that commits say are there, less those that are.
        self._balance = (0, 0)

        self._seq = 0
        self._keys: tuple[str, ...] = ()
        self._checked = Counter(dict.fromkeys(("files", "bytes", "rows", *SCHEMAS), 0))
        self._documents: Counter[str] = Counter()
        self._changed: list[str] = []
        self._not_recounted: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._faults: list[Fault] = []

    def report(self) -> VerifyReport:
        return VerifyReport(
            output=self._output,
            seq=self._seq,
            checked=dict(self._checked),
            documents_compared=self._documents["compared"],
            documents_recut=self._documents["recut"],
            documents_changed=self._documents["changed"],
            changed=self._changed,
            not_recounted=dict(self._not_recounted),
            fault_counts=dict(self._counts),
            faults=self._faults,
        )

    def run(
        self, inputs: Sequence[SourceFile], read: ReadSettings, parse: ParseSettings, folder: Path
    ) -> None:
        try:
            table = Table(self._output)
            shards = table.shards
        except (CommitError, LookupError, TypeError, ValueError) as error:
            self._note_file("control/commits", "manifest", f"cannot be followed: {error}")
            return
        if shards is None:
            self._note_file("control/commits", "manifest", "there is no commit, and so no table")
            return
        self._seq = table.seq
        self._keys = table.partition_by
        self._check_control(table)
        self._read_chunkers()

        shelf = _Shelf(folder, shards)
        if inputs:
            shelf.fill(inputs, read, parse)
        files = defaultdict(list)
        for path, entry in sorted(table.files.items()):
            files[_part(path)[1]].append(entry)
        for shard in sorted({*files, *shelf.shards}):
            self._check_shard(shard, files[shard], shelf, read.source_name if inputs else None)
        if self._balance != (0, 0) and not self._counts.keys() & _LEAVE_IDS_UNSURE:
            message = f"a reader that follows the commits has {self._balance[0]:+,} chunks, or others"
            self._note_file("changes", "changes", message)

    def _note(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self._counts[fault.check] += 1
            if len(self._faults) < _KEPT:
                self._faults.append(fault)

    def _note_file(self, path: str, check: str, message: str) -> None:
        self._note([Fault(path, None, None, check, message)])

    def _note_unreadable(self, path: str, error: Exception) -> None:
        if isinstance(error, OSError) and is_transient(error):
            raise error
        self._note_file(path, "unreadable", f"cannot be read: {error}")
        self._complete = False

    # The files.

    def _check_control(self, table: Table) -> None:
        """What must be there beside the data files, and what must not."""
        try:
            latest = json.loads(self._fs.cat_file(f"{self._root}/control/LATEST"))["seq"]
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            latest = None
        if latest != table.seq:
            self._note_file("control/LATEST", "manifest", f"names commit {latest}, the last is {table.seq}")
        for folder in SCHEMAS:
            for path in self._found(folder):
                if path not in table.files:
                    self._note_file(path, "foreign", "no manifest names it")
        for path in self._found("control/staging"):
            if "/waves/" in path or "/retired/" in path:
                continue  # another run will go on with them
            self._note_file(path, "staging", "is left of a run that was cut off or is at work")

    def _found(self, folder: str) -> list[str]:
        paths: list[str] = self._fs.find(f"{self._root}/{folder}")
        return sorted(path.removeprefix(f"{self._root}/") for path in paths)

    def _read_chunkers(self) -> None:
        for path in self._found("chunkers"):
            try:
                with self._fs.open(f"{self._root}/{path}") as handle:
                    rows = pq.ParquetFile(handle).read().cast(CHUNKERS).to_pylist()
            except _UNREADABLE as error:
                self._note_unreadable(path, error)
                continue
            for row in rows:
                if None in row.values():
                    self._note_file(path, "chunkers", "the chunker is not told in full")
                    continue
                facts = {name.removeprefix("chunker_"): value for name, value in row.items()}
                del facts["first_seen"]
                record = ChunkerRecord(**facts)
                self._chunkers[chunker_value(record)] = record

    def _check_file(self, entry: FileEntry) -> bool:
        """Whether the rows of a file can be read."""
        try:
            with self._fs.open(f"{self._root}/{entry.path}") as handle:
                size, digest = 0, sha256()
                while data := handle.read(_READ_BYTES):
                    size += len(data)
                    digest.update(data)
                self._checked.update(files=1, bytes=size)
                if size != entry.bytes:
                    message = f"has {size} bytes, the manifest says {entry.bytes}"
                    self._note_file(entry.path, "bytes", message)
                elif digest.hexdigest() != entry.sha256:
                    message = f"has SHA-256 {digest.hexdigest()}, the manifest says {entry.sha256}"
                    self._note_file(entry.path, "sha256", message)
                handle.seek(0)
                table = pq.ParquetFile(handle)
                rows, schema = table.metadata.num_rows, table.schema_arrow
                told = json.loads((schema.metadata or {}).get(b"chunkmill.chunker", b"null"))
        except FileNotFoundError:
            self._note_file(entry.path, "missing", "a manifest names it, and it is not there")
            return False
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)
            return False
        if rows != entry.rows:
            self._note_file(entry.path, "rows", f"has {rows} rows, the manifest says {entry.rows}")
        value = _part(entry.path)[0]
        held = self._chunkers.get(value)
        if told != (held and asdict(held)):
            what = "is not what the file says" if held else "is missing"
            self._note_file(entry.path, "chunkers", f"chunkers/{value}.parquet {what}")
        if not schema.remove_metadata().equals(SCHEMAS[entry.kind]):
            message = f"the schema is not that of {entry.kind}; the rows are not looked at"
            self._note_file(entry.path, "schema", message)
            return False
        return True

    def _count_ids(self, ids: Iterable[str | None], sign: int) -> None:
        hashes = [hash(chunk_id) for chunk_id in ids]
        self._balance = (self._balance[0] + sign * len(hashes), self._balance[1] + sign * sum(hashes))

    def _read_ids(self, entry: FileEntry) -> None:
        """What one commit says of the chunks that left or came."""
        try:
            with self._fs.open(f"{self._root}/{entry.path}") as handle:
                ids = pq.ParquetFile(handle, page_checksum_verification=True).read(["chunk_id"])["chunk_id"]
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)
            return
        self._checked.update({"rows": len(ids), entry.kind: len(ids)})
        self._count_ids(ids.to_pylist(), 1 if entry.kind == "changes" else -1)

    def _rows(self, entry: FileEntry) -> Iterator[_Row]:
        """The rows of a file; one that is out of order, or lacks what it must hold, is noted."""
        before = ("", -1)
        for row in self._read(entry):
            if isinstance(row, _Chunk) and None in row[:-2]:
                self._note([_fault(row, "null", f"{row._fields[row.index(None)]} is null")])
                self._complete = False
                continue
            place = row.document_id, row.chunk_index if isinstance(row, _Chunk) else row.row
            if place <= before:
                self._note([_fault(row, "order", f"{place} comes after {before}")])
                self._complete &= place[0] == before[0]
            before = place
            yield row

    def _read(self, entry: FileEntry) -> Iterator[_Row]:
        kind, chunker = _KINDS[entry.kind], _part(entry.path)[0]
        names = list(kind._fields[3:])
        keys = self._keys if entry.kind == "chunks" else ()
        wanted = {*names, "source_name", *map(column_of, keys)}
        first = 0
        try:
            with self._fs.open(f"{self._root}/{entry.path}") as handle:
                table = pq.ParquetFile(handle, page_checksum_verification=True)
                for batch in table.iter_batches(_BATCH_ROWS, columns=sorted(wanted), use_threads=False):
                    self._note(_partition_faults(entry, batch, keys, first))
                    self._checked.update({"rows": batch.num_rows, entry.kind: batch.num_rows})
                    columns = [batch.column(name).to_pylist() for name in names]
                    for number, values in enumerate(zip(*columns, strict=True), first):
                        yield kind(entry.path, number, chunker, *values)
                    first += batch.num_rows
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)

    # The documents.

    def _check_shard(
        self, shard: int, files: Iterable[FileEntry], shelf: _Shelf, source_name: str | None
    ) -> None:
        self._complete = True
        streams: list[Iterator[_Row | _Again]] = [shelf.documents(shard)]
        for entry in files:
            if self._check_file(entry):
                if entry.tells_of_a_commit:
                    self._read_ids(entry)
                else:
                    streams.append(self._rows(entry))
            else:
                self._complete = False
        for document_id, group in groupby(merge(*streams, key=_id_of), _id_of):
            items = list(group)
            rows = [item for item in items if not isinstance(item, _Again)]
            if rows and (home := shard_of(document_id, shelf.number)) != shard:
                self._note([_fault(rows[0], "shard", f"is in shard {shard}, the id belongs to {home}")])
            again: dict[_Place, _Again] = {(d.source_uri, d.source_row): d for d in _of(_Again, items)}
            if source_name is not None:
                self._note(_input_faults(again, _of(_Entry, rows), source_name, self._complete))
            for chunker in sorted({row.chunker for row in rows}):
                self._check_cut(chunker, [row for row in rows if row.chunker == chunker], again)

    def _check_cut(self, chunker: str, rows: list[_Row], again: Mapping[_Place, _Again]) -> None:
        """What one chunker made of one document."""
        chunks = sorted(_of(_Chunk, rows), key=attrgetter("chunk_index"))
        self._count_ids((chunk.chunk_id for chunk in chunks), -1)
        entries = _of(_Entry, rows)
        standing = [entry for entry in entries if entry.status not in _ABSENT]
        entry = standing[0] if standing else None
        record = self._chunkers.get(chunker)

        self._note(_id_faults(chunks, record))
        self._note(_span_faults(chunks, entry))
        if record:
            self._note(_hash_faults([*chunks, *entries], record))
            self._note(_token_faults(chunks, record, self._counter(record, len(chunks))))
        if self._complete:
            self._note(_index_faults(chunks))
            self._note(_ledger_faults(chunks, standing))
            self._note(_deleted_faults(entries))
            self._note(_letter_faults(entries, _of(_Letter, rows)))
        text = self._text(entry, again) if entry else None
        if entry and text is not None:
            self._documents["recut"] += 1
            self._note(_slice_faults(chunks, text))
            if self._complete:
                self._note(_text_faults(chunks, entry, text))

    def _counter(self, record: ChunkerRecord, chunks: int) -> Tokenizer | None:
        """The tokenizer of a chunker; None, which is noted for the number of chunks, if it cannot be had."""
        name, digest = key = record.tokenizer, record.vocabulary_digest
        if key not in self._tokenizers:
            self._tokenizers[key] = None
            # Which files to open is for the caller to say, never for a table.
            if not name.endswith((".json", ".tiktoken")):
                with suppress(ConfigError):
                    found = get_tokenizer(name)
                    self._tokenizers[key] = found if found.vocabulary_digest == digest else None
        counter = self._tokenizers[key]
        if chunks and not counter:
            self._not_recounted[name] += chunks
        return counter

    def _text(self, entry: _Entry, again: Mapping[_Place, _Again]) -> str | None:
        """The text that was cut, if it is at hand; one that is not the text is noted."""
        document = again.get((entry.source_uri, entry.source_row))
        if not document and entry.text is None:
            return None
        if document and document.text is None and entry.status == "skipped":
            return None  # an image on the list of what to skip never had a text
        self._documents["compared"] += 1
        found = None
        if entry.text is not None:
            if _digest(entry.text) == entry.text_sha256:
                found = entry.text
            else:
                message = "the text in the ledger is not the one that was cut"
                self._note([_fault(entry, "text_sha256", message)])
        if not document:
            return found
        parsers_of = attrgetter("parser_name", "parser_version")
        if document.content_sha256 != entry.content_sha256:
            self._note_changed(entry)
        elif document.text is not None and _digest(document.text) == entry.text_sha256:
            found = document.text
        elif document.text is not None and parsers_of(document) != parsers_of(entry):
            self._note_changed(entry)
        else:
            message = "the same source gives another text, or none; were its settings others?"
            self._note([_fault(entry, "text_sha256", message)])
        return found

    def _note_changed(self, entry: _Entry) -> None:
        self._documents["changed"] += 1
        if len(self._changed) < _KEPT:
            self._changed.append(entry.document_id)


_id_of = attrgetter("document_id")


def _part(path: str) -> tuple[str, int]:
    """Partition value of the chunker, and shard of a data file."""
    found = _PART.search(path)
    return (found[1], int(found[2])) if found else ("unknown", 0)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _partition_faults(
    entry: FileEntry, rows: pa.RecordBatch, keys: Sequence[str], first: int
) -> Iterator[Fault]:
    """Rows in the wrong folder; `first` is the position of the first of them in the file."""
    folders = folder_values(entry.folder)
    columns = {"source": rows["source_name"].to_pylist()}
    columns |= {folder_key(key): partition_values(rows, key) for key in keys}
    for name, values in columns.items():
        wrong = {value for value in set(values) if slug(value) != folders.get(name)}
        for place, value in enumerate(values):
            if value in wrong:
                message = (
                    f"lies in {name}={folders.get(name)}, the place of {value!r} is {name}={slug(value)}"
                )
                yield Fault(
                    entry.path, first + place, rows["document_id"][place].as_py(), "partition", message
                )


# The laws, each for the chunks that one chunker made of one document.


def _index_faults(chunks: Sequence[_Chunk]) -> Iterator[Fault]:
    # What one lost row does to all that follow is told once.
    for index, chunk in enumerate(chunks):
        if chunk.chunk_index != index:
            yield _fault(chunk, "chunk_index", f"has index {chunk.chunk_index} in the place of {index}")
            break
    for chunk in chunks:
        if chunk.chunk_count != len(chunks):
            yield _fault(chunk, "chunk_count", f"says {chunk.chunk_count} chunks, there are {len(chunks)}")
            break


def _id_faults(chunks: Sequence[_Chunk], record: ChunkerRecord | None) -> Iterator[Fault]:
    # Other documents and chunkers cannot have an id that follows from these: unique here is unique at all.
    seen: set[str] = set()
    ordinals: Counter[str] = Counter()
    for chunk in chunks:
        chunker_hash = record.hash if record else chunk.chunker_hash
        due = chunk_id(
            chunk.document_id, chunker_hash, text_digest(chunk.text.encode()), ordinals[chunk.text]
        )
        ordinals[chunk.text] += 1
        if chunk.chunk_id in seen:
            yield _fault(chunk, "unique", f"an earlier chunk has the id {chunk.chunk_id}")
        elif chunk.chunk_id != due:
            yield _fault(chunk, "chunk_id", f"the id is {chunk.chunk_id}; {due} follows from the text")
        if chunk.parent_id is not None and chunk.parent_id not in seen:
            yield _fault(chunk, "parent", f"no earlier chunk of the document is {chunk.parent_id}")
        seen.add(chunk.chunk_id)


def _hash_faults(rows: Iterable[_Chunk | _Entry], record: ChunkerRecord) -> Iterator[Fault]:
    for row in rows:
        if row.chunker_hash != record.hash:
            yield _fault(row, "chunker_hash", f"is {row.chunker_hash}, the partition's is {record.hash}")


def _token_faults(
    chunks: Sequence[_Chunk], record: ChunkerRecord, counter: Tokenizer | None
) -> Iterator[Fault]:
    told = [chunk.token_count for chunk in chunks]
    counted = counter.count_many([chunk.text for chunk in chunks]) if counter else told
    for chunk, tokens in zip(chunks, counted, strict=True):
        if tokens != chunk.token_count:
            yield _fault(chunk, "token_count", f"says {chunk.token_count} tokens, there are {tokens}")
        if chunk.token_count > record.chunk_size and not chunk.over_budget:
            message = f"{chunk.token_count} tokens are more than {record.chunk_size}, and it is not marked"
            yield _fault(chunk, "budget", message)


def _span_faults(chunks: Sequence[_Chunk], entry: _Entry | None) -> Iterator[Fault]:
    before = None
    hulls: dict[str, tuple[int, int]] = {}
    for chunk in chunks:
        if not chunk.text.strip():
            yield _fault(chunk, "blank", "the text is blank")
        start, end = hulls[chunk.chunk_id] = (chunk.start_char, chunk.end_char)
        around = hulls.get(chunk.parent_id) if chunk.parent_id else None
        # The children of a chunk are parts of it: order and overlap are those of the chunks around them.
        is_child = around is not None and around[0] <= start and end <= around[1]
        neighbour = None if is_child else before
        if message := _span_message(chunk, neighbour, entry):
            yield _fault(chunk, "span", message)
        if not chunk.is_derived and not (neighbour and neighbour.is_derived):
            shared = _shared(neighbour, chunk) if neighbour else 0
            if chunk.overlap_chars != shared:
                message = f"says {chunk.overlap_chars} characters, the chunk before has {shared} of them"
                yield _fault(chunk, "overlap", message)
        first, last = (neighbour.line_start, neighbour.line_end) if neighbour else (1, 1)
        if not (first <= chunk.line_start <= chunk.line_end >= last):
            message = f"lines {chunk.line_start} to {chunk.line_end} follow lines {first} to {last}"
            yield _fault(chunk, "lines", message)
        before = before if is_child else chunk


def _span_message(chunk: _Chunk, before: _Chunk | None, entry: _Entry | None) -> str | None:
    """What is wrong with the span of a chunk, without the text of the document."""
    edges = [edge for piece in chunk.pieces for edge in piece]
    hull = (chunk.start_char, chunk.end_char, chunk.start_byte, chunk.end_byte)
    if edges != sorted(edges) or any(start >= end for start, end in chunk.pieces):
        return f"the spans {chunk.pieces} are empty or out of order"
    if [*edges[:1], *edges[-1:]] != [*hull[:2]]:
        return f"the spans {chunk.pieces} do not reach from {hull[0]} to {hull[1]}"
    if hull[0] < 0 or not 0 <= hull[2] < hull[3]:
        return f"characters {hull[0]} to {hull[1]}, bytes {hull[2]} to {hull[3]} are none of a document"
    if entry and (hull[1] > (entry.char_count or 0) or hull[3] > (entry.byte_count or 0)):
        size = f"{entry.char_count} characters, {entry.byte_count} bytes"
        return f"ends at character {hull[1]}, byte {hull[3]}; the document has {size}"
    if before:
        other = (before.start_char, before.end_char, before.start_byte, before.end_byte)
        if any(ours <= theirs for ours, theirs in zip(hull, other, strict=True)):
            return f"the span {hull} does not come after {other}"
    if not chunk.is_derived:
        held = (len(chunk.text), len(chunk.text.encode()))
        chars = sum(end - start for start, end in chunk.pieces)
        size_of = (chars, hull[3] - hull[2] if chunk.spans is None else held[1])
        if size_of != held:
            return f"the span has {size_of} characters and bytes, the text {held}"
    return None


def _shared(before: _Chunk, chunk: _Chunk) -> int:
    """Characters that lie in spans of both."""
    pairs = ((held, own) for held in before.pieces for own in chunk.pieces)
    return sum(max(0, min(held[1], own[1]) - max(held[0], own[0])) for held, own in pairs)


def _ledger_faults(chunks: Sequence[_Chunk], standing: Sequence[_Entry]) -> Iterator[Fault]:
    for chunk in [] if standing else chunks[:1]:
        yield _fault(chunk, "ledger", f"{len(chunks)} chunks of a document that the ledger does not list")
    for entry in standing[1:]:
        yield _fault(entry, "ledger", f"is listed {len(standing)} times for one chunker")
    for entry in standing[:1]:
        found = (len(chunks), sum(c.token_count for c in chunks), sum(c.over_budget for c in chunks))
        told = (entry.chunk_count, entry.token_count, entry.over_budget_count)
        if found != told:
            names = "(chunks, tokens, chunks over the budget)"
            yield _fault(entry, "ledger", f"says {told} {names}, there are {found}")
        elif (entry.status == "ok") != bool(chunks):
            yield _fault(entry, "ledger", f"has status {entry.status} and {len(chunks)} chunks")
        if entry.lost_chars:
            yield _fault(entry, "coverage", f"says that {entry.lost_chars} characters are in no chunk")


def _deleted_faults(entries: Sequence[_Entry]) -> Iterator[Fault]:
    # What left one source may stand in another: no run writes the ledger of a source that it does not cover.
    listed = Counter(entry.source_name for entry in entries if entry.status != "failed")
    for entry in entries:
        if entry.status == "deleted" and (listed[entry.source_name] > 1 or entry.chunk_count):
            yield _fault(
                entry, "ledger", "says that a document is deleted that is listed again or has chunks"
            )


def _letter_faults(entries: Sequence[_Entry], letters: Sequence[_Letter]) -> Iterator[Fault]:
    failed = [entry for entry in entries if entry.status == "failed"]
    for rows, others, lack in (
        (failed, letters, "dead letter"),
        (letters, failed, "failed row in the ledger"),
    ):
        alone = Counter(row.reason for row in rows) - Counter(row.reason for row in others)
        for row in rows:
            if alone[row.reason] > 0:
                alone[row.reason] -= 1
                yield _fault(row, "dead_letter", f"failed with {row.reason}, and there is no {lack} for it")


def _slice_faults(chunks: Sequence[_Chunk], text: str) -> Iterator[Fault]:
    breaks = array("q", (found.end() for found in _LINE_BREAK.finditer(text)))
    at = byte = 0
    for chunk in chunks:
        start, end = chunk.start_char, chunk.end_char
        if not chunk.is_derived and chunk.text != "".join(text[s:e] for s, e in chunk.pieces):
            yield _fault(chunk, "slice", f"the text is not what the document holds at {chunk.pieces}")
        told = (chunk.line_start, chunk.line_end)
        lines = (bisect_right(breaks, start) + 1, bisect_right(breaks, end - 1) + 1)
        if lines != told:
            yield _fault(chunk, "lines", f"says lines {told}, they are {lines}")
        if start < at:
            continue  # out of order, which is told
        byte += len(text[at:start].encode())
        at = start
        told = (chunk.start_byte, chunk.end_byte)
        span = (byte, byte + len(text[start:end].encode()))
        if span != told:
            yield _fault(chunk, "byte_span", f"says bytes {told}, they are {span}")


def _text_faults(chunks: Sequence[_Chunk], entry: _Entry, text: str) -> Iterator[Fault]:
    size, told = (len(text), len(text.encode())), (entry.char_count, entry.byte_count)
    if size != told:
        yield _fault(entry, "ledger", f"says {told} characters and bytes, the text has {size}")
    if entry.status == "skipped":
        return
    lost: list[str] = []
    covered = 0
    for start, end in sorted([*(piece for c in chunks for piece in c.pieces), (len(text), len(text))]):
        if start > covered:
            lost += text[covered:start].split()
        covered = max(covered, end)
    chars = sum(map(len, lost))
    told_chars = (entry.lost_chars or 0) + (entry.removed_chars or 0)
    if chars != told_chars:
        message = f"{chars} characters are in no chunk, the ledger says {told_chars}"
        yield _fault(entry, "coverage", f"{message}: {' '.join(lost[:3])[:60]!r}")


# The inputs.


def _input_faults(
    again: Mapping[_Place, _Again], entries: Iterable[_Entry], source_name: str, complete: bool
) -> Iterator[Fault]:
    there = (e for e in entries if e.source_name == source_name and e.status != "deleted")
    listed = {(e.source_uri, e.source_row): e for e in there}
    for place, document in again.items():
        if complete and document.text is not None and place not in listed:
            file, row = document.source_uri, document.source_row
            yield Fault(file, row, document.document_id, "unlisted", "the ledger does not list it")
    for place, entry in listed.items():
        if entry.status != "failed" and place not in again:
            row_of = "" if entry.source_row is None else f"row {entry.source_row} of "
            yield _fault(entry, "unread", f"{row_of}{entry.source_uri} is not in the inputs, or is another")


class _Shelf:
    """Documents on disk, by shard, since they come in another order than the table has.

    Args:
        folder: Folder for its files.
        number: Shards of the table.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._folder = folder
        self._sizes: defaultdict[int, list[int]] = defaultdict(list)

    @property
    def shards(self) -> Iterable[int]:
        """Shards that have documents."""
        return self._sizes.keys()

    def fill(self, inputs: Sequence[SourceFile], read: ReadSettings, parse: ParseSettings) -> None:
        """Take all documents of the inputs."""
        builder = PackBuilder(Run("verify", 0, shards=self.number, keep_text=True))
        for item in _read_again(inputs, read, parse):
            self._put(builder.add(item))
        self._put(builder.flush())

    def _put(self, packs: Iterable[Pack]) -> None:
        for shard, pack in packs:
            with (self._folder / str(shard)).open("ab") as file:
                file.write(pack)
            self._sizes[shard].append(len(pack))

    def documents(self, shard: int) -> Iterator[_Again]:
        """The documents of a shard, sorted by id."""
        if shard not in self._sizes:
            return
        with (self._folder / str(shard)).open("rb") as file:
            packs = read_packs(file.read(size) for size in self._sizes[shard])
        names = list(_Again._fields)
        letters = packs["dead_letters"].select(names[:4])
        rows = pa.concat_tables([packs["documents"].select(names), letters], promote_options="default")
        for batch in rows.sort_by("document_id").to_batches(max_chunksize=64):
            columns = [column.to_pylist() for column in batch.columns]
            yield from map(_Again._make, zip(*columns, strict=True))


def _read_again(
    inputs: Sequence[SourceFile], read: ReadSettings, parse: ParseSettings
) -> Iterator[DocumentChunks | DeadLetter]:
    """The documents of the inputs, as yet uncut, and a dead letter for each that cannot be had."""
    nobody = ChunkerRecord("", 0, "", "{}", "", "", 1)
    tables = (sources.plan(file, read) for file in inputs if file.format == "parquet")
    objects = sources.plan_objects((file for file in inputs if file.format == "object"), read)
    parse = parse.model_copy(update={"markdown": False})  # only texts are compared
    for task in chain(chain.from_iterable(tables), objects):
        for item in [task] if isinstance(task, DeadLetter) else sources.read(task, read):
            if isinstance(item, DeadLetter):
                # An object that cannot be read has the id that it would have, to be found in the ledger.
                is_object = isinstance(task, sources.ReadTask) and not task.row_groups
                uri = item.source.uri
                yield replace(item, document_id=sources.address_id(uri)) if is_object else item
                continue
            try:
                yield DocumentChunks(parsers.parse(item, parse), (), "ok", nobody)
            except ParseError as error:
                yield DeadLetter(item.document_id, error.stage, error.reason, error.message, item.source)
