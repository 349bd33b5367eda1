"""The stages in one step, a read task at a time: how a run on one machine stays small and goes on where it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from time import process_time
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin, PCollection

from transforms.chunk import ChunkDocuments
from transforms.packs import Compression, Pack, PackBuilder
from transforms.parse import ParseDocuments
from transforms.provenance import Run
from transforms.read import ReadDocuments
from transforms.records import DeadLetter
from transforms.run_report import Report
from transforms.sources import ReadTask
from transforms.spilled import Spilled, Wave
from transforms.stage import Timed
from transforms.write import WriteChunks


class RunInWaves(beam.PTransform[PBegin, PCollection[Report]]):
    """Reads, parses, cuts and writes what the four stages do, with the same files, but sets all packs aside on disk.

    Beam's runner on one machine holds in memory what flows from one step to the next. Here that is where the packs
    are, not the packs. What a run that was killed has set aside is taken as it is by the next run with its id.

    Args:
        read: The first stage.
        parse: The second.
        chunk: The third.
        write: The last.
    """

    def __init__(
        self, read: ReadDocuments, parse: ParseDocuments, chunk: ChunkDocuments, write: WriteChunks
    ) -> None:
        super().__init__()
        self._read = read
        self._stages = (read.step, parse.step, chunk.step)
        self._write = write

    def expand(self, root: PBegin) -> PCollection[Report]:
        """Adds the steps to the pipeline."""
        wave = _Wave(self._stages, self._write.run, self._write.output)
        packs = self._read.tasks(root) | "Wave" >> beam.ParDo(wave).with_output_types(tuple[int, Any])
        return self._write.write(packs)


class _Wave(Timed):
    def __init__(self, stages: Sequence[beam.DoFn], run: Run, output: str) -> None:
        super().__init__("pack_ms")
        self._stages = stages
        self._run = run
        self._output = output

    def setup(self) -> None:
        for stage in self._stages:
            stage.setup()

    def start_bundle(self) -> None:
        for stage in self._stages:
            stage.start_bundle()

    def process(self, element: ReadTask | DeadLetter) -> Iterable[tuple[int, Spilled | bytes]]:
        if isinstance(element, DeadLetter):
            return self._packs(element, "lz4")
        wave = Wave(element, self._run, self._output)
        found = wave.spilled()
        return (wave.spill(self._packs(element, wave.compression)) if found is None else found).items()

    def finish_bundle(self) -> None:
        for stage in self._stages:
            stage.finish_bundle()

    def _packs(self, element: ReadTask | DeadLetter, compression: Compression) -> Iterator[Pack]:
        """The packs of what the stages make of `element`."""
        elements: Iterable[Any] = [element]
        for stage in self._stages:
            elements = chain.from_iterable(map(stage.process, elements))
        builder = PackBuilder(self._run, compression=compression)
        spent = 0.0
        for cut in elements:
            began = process_time()
            packs = builder.add(cut)
            spent += process_time() - began
            yield from packs
        began = process_time()
        yield from builder.flush()
        self.spent(spent + process_time() - began)
