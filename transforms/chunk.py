"""The third stage: documents to their chunks."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.metrics.metric import Metrics
from apache_beam.pvalue import PCollection

from transforms.chunkers import Chunker, get_chunker
from transforms.records import DeadLetter, Document, DocumentChunks
from transforms.stage import DocumentStage


class ChunkDocuments(
    beam.PTransform[PCollection[Document | DeadLetter], PCollection[DocumentChunks | DeadLetter]]
):
    """Cuts each document; one that cannot be cut flows on as a `DeadLetter`.

    A document gives one element with all of its chunks, never some of them.

    Args:
        chunker: A chunker, or the name of a strategy.
        **settings: Settings of the strategy, if it was named.

    Raises:
        ConfigError: If there is no such strategy, or it refuses a setting.
    """

    def __init__(self, chunker: Chunker | str, **settings: Any) -> None:
        super().__init__()
        self.chunker = get_chunker(chunker, **settings) if isinstance(chunker, str) else chunker

    def expand(
        self, documents: PCollection[Document | DeadLetter]
    ) -> PCollection[DocumentChunks | DeadLetter]:
        """Adds the step to the pipeline."""
        results: PCollection[DocumentChunks | DeadLetter] = documents | beam.ParDo(_Chunk(self.chunker))
        return results


class _Chunk(DocumentStage[Document, DocumentChunks]):
    def __init__(self, chunker: Chunker) -> None:
        super().__init__("chunk", chunker.chunk_document)
        self._chunker = chunker

    def setup(self) -> None:
        """Loads the vocabulary, which takes a second and is no document's fault."""
        _ = self._chunker.counter

    def finish_bundle(self) -> None:
        """Reports the time spent, and what encoded, which may change while a worker is at work."""
        super().finish_bundle()
        counter = self._chunker.counter
        if engine := getattr(counter, "engine", None):
            fallback = getattr(counter, "fallback", None)
            name = f"{engine} ({fallback})" if fallback else engine
            # What is counted in setup is lost.
            Metrics.counter("chunkmill", f"engine:{name}").inc()
