"""Documents that are read again, to be held against the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from transforms import parsers, sources
from transforms.errors import ParseError
from transforms.packs import Pack, PackBuilder, read_packs
from transforms.parsers import ParseSettings
from transforms.provenance import ChunkerRecord, Run
from transforms.records import DeadLetter, DocumentChunks, dead_letter
from transforms.sources import ReadSettings, SourceFile
from transforms.verify.report import Fault
from transforms.verify.rows import Again, Entry, Place, fault_of


def input_faults(
    again: Mapping[Place, Again], entries: Iterable[Entry], source_name: str, complete: bool
) -> Iterator[Fault]:
    """Documents that only the inputs have, and those that only the ledger has."""
    there = (e for e in entries if e.source_name == source_name and e.status != "deleted")
    listed = {(e.source_uri, e.source_row): e for e in there}
    for place, document in again.items():
        if complete and document.text is not None and place not in listed:
            file, row = document.source_uri, document.source_row
            yield Fault(file, row, document.document_id, "unlisted", "the ledger does not list it")
    for place, entry in listed.items():
        if entry.status != "failed" and place not in again:
            row_of = "" if entry.source_row is None else f"row {entry.source_row} of "
            yield fault_of(entry, "unread", f"{row_of}{entry.source_uri} is not in the inputs, or is another")


class Shelf:
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

    def documents(self, shard: int) -> Iterator[Again]:
        """The documents of a shard, sorted by id."""
        if shard not in self._sizes:
            return
        with (self._folder / str(shard)).open("rb") as file:
            packs = read_packs(file.read(size) for size in self._sizes[shard])
        names = list(Again._fields)
        letters = packs["dead_letters"].select(names[:4])
        rows = pa.concat_tables([packs["documents"].select(names), letters], promote_options="default")
        for batch in rows.sort_by("document_id").to_batches(max_chunksize=64):
            columns = [column.to_pylist() for column in batch.columns]
            yield from map(Again._make, zip(*columns, strict=True))


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
                yield dead_letter(item, error)
