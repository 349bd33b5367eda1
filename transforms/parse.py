"""The second stage: raw documents to documents."""

from __future__ import annotations

from functools import partial

import apache_beam as beam
from apache_beam.pvalue import PCollection

from transforms.parsers import ParseSettings, parse
from transforms.records import DeadLetter, Document, RawDocument
from transforms.stage import DocumentStage


class ParseDocuments(
    beam.PTransform[PCollection[RawDocument | DeadLetter], PCollection[Document | DeadLetter]]
):
    """Decodes and parses each document; what cannot be parsed flows on as a `DeadLetter`.

    Args:
        settings: How to parse.
    """

    def __init__(self, settings: ParseSettings | None = None) -> None:
        super().__init__()
        self.step: beam.DoFn = DocumentStage("parse", partial(parse, settings=settings or ParseSettings()))

    def expand(self, documents: PCollection[RawDocument | DeadLetter]) -> PCollection[Document | DeadLetter]:
        """Adds the step to the pipeline."""
        results: PCollection[Document | DeadLetter] = documents | beam.ParDo(self.step)
        return results
