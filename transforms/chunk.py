"""The third stage: documents to their chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import PCollection

from transforms.chunkers import Chunker, compiled, get_chunker
from transforms.records import DeadLetter, Document, DocumentChunks
from transforms.rules import Rule, Rules
from transforms.stage import DocumentStage


class ChunkDocuments(
    beam.PTransform[PCollection[Document | DeadLetter], PCollection[DocumentChunks | DeadLetter]]
):
    """Cuts each document; one that cannot be cut flows on as a `DeadLetter`.

    A document gives one element with all of its chunks, never some of them.

    Args:
        chunker: A chunker, or the name of a strategy; it cuts what no rule takes.
        rules: Other chunkers for some of the documents; the first rule that takes a document counts.
        **settings: Settings of the strategy, if it was named.

    Raises:
        ConfigError: If there is no such strategy, or it refuses a setting.
    """

    def __init__(self, chunker: Chunker | str, rules: Sequence[Rule] = (), **settings: Any) -> None:
        super().__init__()
        self.chunker = get_chunker(chunker, **settings) if isinstance(chunker, str) else chunker
        self.step: beam.DoFn = _Chunk(Rules(self.chunker, rules))

    def expand(
        self, documents: PCollection[Document | DeadLetter]
    ) -> PCollection[DocumentChunks | DeadLetter]:
        """Adds the step to the pipeline."""
        results: PCollection[DocumentChunks | DeadLetter] = documents | beam.ParDo(self.step)
        return results


class _Chunk(DocumentStage[Document, DocumentChunks]):
    def __init__(self, rules: Rules) -> None:
        super().__init__("chunk", rules.chunk_document)
        self._rules = rules

    def setup(self) -> None:
        """Loads the vocabularies, which takes a second and is no document's fault."""
        self._counters = [chunker.counter for chunker in self._rules.chunkers]

    def process(self, element: Document | DeadLetter) -> Iterable[DocumentChunks | DeadLetter]:
        """The chunks of one document, or its dead letter, unless it would be skipped whatever its text."""
        if isinstance(element, DeadLetter):
            return [self._rules.skipped(element) or element]
        return super().process(element)

    def finish_bundle(self) -> None:
        """Reports the time spent, and what encoded and cut; the former may change while a worker is at work."""
        super().finish_bundle()
        engines = [compiled.loops()]
        for counter in self._counters:
            if engine := getattr(counter, "engine", None):
                fallback = getattr(counter, "fallback", None)
                engines.append(f"{engine} ({fallback})" if fallback else engine)
        for engine in engines:
            # What is counted in setup is lost.
            Metrics.counter("chunkmill", f"engine:{engine}").inc()
