"""Write chunks: rows to the shard of their document, each shard to its files, all files into one commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from time import process_time, time_ns
from typing import Any
from uuid import uuid4

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows

from transforms.commit import commit
from transforms.kept import kept_rows
from transforms.packs import Pack, PackBuilder
from transforms.parquet_files import STANDARD, Layout
from transforms.paths import FileEntry
from transforms.provenance import ChunkerRecord, Run
from transforms.records import DeadLetter, DocumentChunks
from transforms.run_report import Report
from transforms.shards import write_shard
from transforms.spilled import Spilled
from transforms.stage import Timed


class WriteChunks(beam.PTransform[PCollection[DocumentChunks | DeadLetter], PCollection[Report]]):
    """Writes `DocumentChunks` and `DeadLetter` elements to a table, as one commit; gives the run's report.

    Args:
        output: Root of the table.
        run: The run; by default one of its own, which no later run can repeat.
        default_chunker: Chunker by which documents are filed that no chunker saw.
        layout: How files are cut and encoded.
        chunkers: Further chunkers of the run: it replaces what the table holds of them, even by nothing.
    """

    def __init__(
        self,
        output: str,
        run: Run | None = None,
        default_chunker: ChunkerRecord | None = None,
        layout: Layout = STANDARD,
        chunkers: Sequence[ChunkerRecord] = (),
    ) -> None:
        super().__init__()
        self.output = output
        self.run = run or Run(run_id=uuid4().hex, created_at=time_ns() // 1000)
        self._default_chunker = default_chunker
        self._layout = layout
        self._chunkers = [*([default_chunker] if default_chunker else []), *chunkers]

    def expand(self, elements: PCollection[DocumentChunks | DeadLetter]) -> PCollection[Report]:
        """Pack, shuffle by shard, write, commit."""
        packs = elements | "Pack" >> beam.ParDo(_Pack(self.run)).with_output_types(tuple[int, bytes])
        return self.write(packs)

    def write(self, packs: PCollection[tuple[int, bytes | Spilled]]) -> PCollection[Report]:
        """What follows packing: shuffle by shard, write, commit.

        Args:
            packs: Packs with the number of their shard.
        """
        # A shard that only loses rows is written anew too.
        shards = self.run.increment.retired_shards if self.run.increment else ()
        empty = beam.Create([(shard, b"") for shard in shards]).with_output_types(tuple[int, Any])
        retired = packs.pipeline | "Retired" >> empty
        entries = (
            (packs, retired)
            | "AllShards" >> beam.Flatten()
            | "ByShard" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.ParDo(_WriteShard(self.output, self.run, self._default_chunker, self._layout))
        )
        # Without it a run without documents would not be committed.
        impulse = packs.pipeline | "Impulse" >> beam.Create([None])
        reports: PCollection[Report] = (
            (entries, impulse)
            | beam.Flatten()
            | "OneKey" >> beam.WithKeys(0)
            | "Gather" >> beam.GroupByKey()
            | "Commit" >> beam.ParDo(_Commit(self.output, self.run, self._chunkers))
        )
        return reports


class _Pack(Timed):
    def __init__(self, run: Run) -> None:
        super().__init__("pack_ms")
        self._run = run

    def start_bundle(self) -> None:
        self._builder = PackBuilder(self._run)
        self._seconds = 0.0

    def process(self, element: DocumentChunks | DeadLetter) -> Iterable[Pack]:
        began = process_time()
        packs = self._builder.add(element)
        self._seconds += process_time() - began
        return packs

    def finish_bundle(self) -> Iterable[Any]:
        began = process_time()
        packs = [GlobalWindows.windowed_value(pack) for pack in self._builder.flush()]
        self.spent(self._seconds + process_time() - began)
        return packs


class _WriteShard(Timed):
    def __init__(self, output: str, run: Run, default_chunker: ChunkerRecord | None, layout: Layout) -> None:
        super().__init__("write_ms")
        self._settings = (run, output, default_chunker, layout)

    def process(self, element: tuple[int, Iterable[bytes | Spilled]]) -> Iterable[FileEntry]:
        began = process_time()
        shard, values = element
        run, output, *_ = self._settings
        packs = chain.from_iterable([v] if isinstance(v, bytes) else v.read(output) for v in values)
        entries = write_shard(shard, packs, *self._settings, kept_rows(output, run, shard))
        self.spent(process_time() - began)
        return entries


class _Commit(Timed):
    def __init__(self, output: str, run: Run, chunkers: Sequence[ChunkerRecord]) -> None:
        super().__init__("commit_ms")
        self._settings = (run, output, chunkers)

    def process(self, element: tuple[int, Iterable[FileEntry | None]]) -> Iterable[Report]:
        began = process_time()
        _, entries = element
        report = commit((entry for entry in entries if entry), *self._settings)
        self.spent(process_time() - began)
        return [report]
