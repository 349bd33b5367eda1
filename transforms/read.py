"""The first stage: files to raw documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import PBegin, PCollection

from transforms.records import DeadLetter, RawDocument
from transforms.sources import (
    ReadSettings,
    ReadTask,
    SourceFile,
    check_columns,
    match,
    plan,
    plan_objects,
    read,
)
from transforms.stage import Timed


class ReadDocuments(beam.PTransform[PBegin, PCollection[RawDocument | DeadLetter]]):
    """Reads documents from tables and objects: `RawDocument`s, and a `DeadLetter` for what cannot be read.

    Args:
        inputs: Files, or names and patterns of files, which are matched here and now.
        settings: How to read.

    Raises:
        ConfigError: If a pattern matches nothing, or the columns of the first table do not fit the settings.
    """

    def __init__(
        self, inputs: Sequence[SourceFile] | Sequence[str], settings: ReadSettings | None = None
    ) -> None:
        super().__init__()
        self.settings = settings or ReadSettings()
        files = [file for file in inputs if isinstance(file, SourceFile)]
        if patterns := [name for name in inputs if isinstance(name, str)]:
            files += match(patterns, input_format=self.settings.input_format)
        self.tables = [file for file in files if file.format == "parquet"]
        self.bundles = list(plan_objects((file for file in files if file.format == "object"), self.settings))
        any(check_columns(table, self.settings) for table in self.tables)
        self.step: beam.DoFn = _Read(self.settings)

    def expand(self, root: PBegin) -> PCollection[RawDocument | DeadLetter]:
        """Adds the steps to the pipeline."""
        documents: PCollection[RawDocument | DeadLetter] = self.tasks(root) | "Read" >> beam.ParDo(self.step)
        return documents

    def tasks(self, root: PBegin) -> PCollection[ReadTask | DeadLetter]:
        """What there is to read, spread over all workers, and a dead letter for what cannot be."""
        tasks: PCollection[ReadTask | DeadLetter] = (
            root
            | "Files" >> beam.Create([*self.tables, *self.bundles])
            | "Plan" >> beam.FlatMap(_plan, self.settings)
            | "Spread" >> beam.Reshuffle()
        )
        return tasks


def _plan(item: SourceFile | ReadTask, settings: ReadSettings) -> Iterator[ReadTask | DeadLetter]:
    return plan(item, settings) if isinstance(item, SourceFile) else iter([item])


class _Read(Timed):
    def __init__(self, settings: ReadSettings) -> None:
        super().__init__("read_ms")
        self.settings = settings
        self.documents = Metrics.counter("chunkmill", "documents_read")
        self.bytes = Metrics.counter("chunkmill", "bytes_read")

    def process(self, element: ReadTask | DeadLetter) -> Iterator[RawDocument | DeadLetter]:
        if isinstance(element, DeadLetter):
            yield element
            return
        items = read(element, self.settings)
        documents = size = 0
        spent = 0.0
        while True:
            # What the next stages do between two items is not reading.
            start = time.process_time()
            item = next(items, None)
            spent += time.process_time() - start
            if item is None:
                break
            if isinstance(item, RawDocument):
                documents += 1
                size += item.source.size or 0
            yield item
        self.documents.inc(documents)
        self.bytes.inc(size)
        self.spent(spent)
