"""A verification under way: the files shard by shard, and all that they hold of a document brought together."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from heapq import merge
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.errors import CommitError, ConfigError
from transforms.fingerprint import text_digest
from transforms.packs import shard_of
from transforms.parquet_files import chunker_in
from transforms.parsers import ParseSettings
from transforms.partitions import column_of, folder_key, folder_values, partition_values
from transforms.paths import STAGING, FileEntry, chunker_value, slug
from transforms.provenance import ChunkerRecord
from transforms.records import ABSENT
from transforms.schemas import CHUNKERS, SCHEMAS
from transforms.sources import ReadSettings, SourceFile
from transforms.storage import filesystem, is_transient, public_uri
from transforms.table import LATEST, Table
from transforms.tokenizers import Tokenizer, get_tokenizer
from transforms.verify.inputs import Shelf, input_faults
from transforms.verify.laws import (
    deleted_faults,
    hash_faults,
    id_faults,
    index_faults,
    ledger_faults,
    letter_faults,
    slice_faults,
    span_faults,
    text_faults,
    token_faults,
)
from transforms.verify.report import Fault, VerifyReport
from transforms.verify.rows import KINDS, Again, Chunk, Entry, Letter, Place, Row, fault_of, of_kind

_KEPT = 100
_BATCH_ROWS = 1024
_READ_BYTES = 1 << 20
_LEAVE_IDS_UNSURE = {"manifest", "missing", "unreadable", "rows", "schema", "null", "chunk_id", "unique"}
_UNREADABLE = (OSError, ValueError, LookupError, pa.ArrowException)
_id_of = attrgetter("document_id")


class Proof:
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
        """What was looked at and found so far."""
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
        """Look at all of the table, and at the documents of the inputs."""
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

        shelf = Shelf(folder, shards)
        if inputs:
            shelf.fill(inputs, read, parse)
        files = defaultdict(list)
        for path in sorted(table.files):
            entry = table.files[path]
            files[entry.shard].append(entry)
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
            latest = json.loads(self._fs.cat_file(f"{self._root}/{LATEST}"))["seq"]
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            latest = None
        if latest != table.seq:
            self._note_file(LATEST, "manifest", f"names commit {latest}, the last is {table.seq}")
        for folder in SCHEMAS:
            for path in self._found(folder):
                if path not in table.files:
                    self._note_file(path, "foreign", "no manifest names it")
        for path in self._found(STAGING):
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
                told = json.loads(chunker_in(schema) or "null")
        except FileNotFoundError:
            self._note_file(entry.path, "missing", "a manifest names it, and it is not there")
            return False
        except _UNREADABLE as error:
            self._note_unreadable(entry.path, error)
            return False
        if rows != entry.rows:
            self._note_file(entry.path, "rows", f"has {rows} rows, the manifest says {entry.rows}")
        value = folder_values(entry.folder)["chunker"]
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

    def _rows(self, entry: FileEntry) -> Iterator[Row]:
        """The rows of a file; one that is out of order, or lacks what it must hold, is noted."""
        before = ("", -1)
        for row in self._read(entry):
            if isinstance(row, Chunk) and None in row[:-2]:
                self._note([fault_of(row, "null", f"{row._fields[row.index(None)]} is null")])
                self._complete = False
                continue
            place = row.document_id, row.chunk_index if isinstance(row, Chunk) else row.row
            if place <= before:
                self._note([fault_of(row, "order", f"{place} comes after {before}")])
                self._complete &= place[0] == before[0]
            before = place
            yield row

    def _read(self, entry: FileEntry) -> Iterator[Row]:
        kind, chunker = KINDS[entry.kind], folder_values(entry.folder)["chunker"]
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
        self, shard: int, files: Iterable[FileEntry], shelf: Shelf, source_name: str | None
    ) -> None:
        self._complete = True
        streams: list[Iterator[Row | Again]] = [shelf.documents(shard)]
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
            rows = [item for item in items if not isinstance(item, Again)]
            if rows and (home := shard_of(document_id, shelf.number)) != shard:
                self._note([fault_of(rows[0], "shard", f"is in shard {shard}, the id belongs to {home}")])
            again: dict[Place, Again] = {(d.source_uri, d.source_row): d for d in of_kind(Again, items)}
            if source_name is not None:
                self._note(input_faults(again, of_kind(Entry, rows), source_name, self._complete))
            for chunker in sorted({row.chunker for row in rows}):
                self._check_cut(chunker, [row for row in rows if row.chunker == chunker], again)

    def _check_cut(self, chunker: str, rows: list[Row], again: Mapping[Place, Again]) -> None:
        """What one chunker made of one document."""
        chunks = sorted(of_kind(Chunk, rows), key=attrgetter("chunk_index"))
        self._count_ids((chunk.chunk_id for chunk in chunks), -1)
        entries = of_kind(Entry, rows)
        standing = [entry for entry in entries if entry.status not in ABSENT]
        entry = standing[0] if standing else None
        record = self._chunkers.get(chunker)

        self._note(id_faults(chunks, record))
        self._note(span_faults(chunks, entry))
        if record:
            self._note(hash_faults([*chunks, *entries], record))
            self._note(token_faults(chunks, record, self._counter(record, len(chunks))))
        if self._complete:
            self._note(index_faults(chunks))
            self._note(ledger_faults(chunks, standing))
            self._note(deleted_faults(entries))
            self._note(letter_faults(entries, of_kind(Letter, rows)))
        text = self._text(entry, again) if entry else None
        if entry and text is not None:
            self._documents["recut"] += 1
            self._note(slice_faults(chunks, text))
            if self._complete:
                self._note(text_faults(chunks, entry, text))

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

    def _text(self, entry: Entry, again: Mapping[Place, Again]) -> str | None:
        """The text that was cut, if it is at hand; one that is not the text is noted."""
        document = again.get((entry.source_uri, entry.source_row))
        if not document and entry.text is None:
            return None
        if document and document.text is None and entry.status == "skipped":
            return None  # an image on the list of what to skip never had a text
        self._documents["compared"] += 1
        found = None
        if entry.text is not None:
            if text_digest(entry.text.encode()) == entry.text_sha256:
                found = entry.text
            else:
                message = "the text in the ledger is not the one that was cut"
                self._note([fault_of(entry, "text_sha256", message)])
        if not document:
            return found
        parsers_of = attrgetter("parser_name", "parser_version")
        if document.content_sha256 != entry.content_sha256:
            self._note_changed(entry)
        elif document.text is not None and text_digest(document.text.encode()) == entry.text_sha256:
            found = document.text
        elif document.text is not None and parsers_of(document) != parsers_of(entry):
            self._note_changed(entry)
        else:
            message = "the same source gives another text, or none; were its settings others?"
            self._note([fault_of(entry, "text_sha256", message)])
        return found

    def _note_changed(self, entry: Entry) -> None:
        self._documents["changed"] += 1
        if len(self._changed) < _KEPT:
            self._changed.append(entry.document_id)


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
