"""What the stages between reading and writing share: a pure function applied to one document after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import apache_beam as beam
from apache_beam.metrics.metric import Metrics

from transforms.errors import DocumentError
from transforms.records import DeadLetter, Document, RawDocument, dead_letter

In = TypeVar("In", bound="RawDocument | Document")
Out = TypeVar("Out")


class Timed(beam.DoFn):
    """Tells the milliseconds of CPU that were spent in a step.

    Args:
        name: Name of the distribution that holds them.
    """

    def __init__(self, name: str) -> None:
        self._distribution = Metrics.distribution("chunkmill", name)

    def spent(self, seconds: float) -> None:
        """Adds some seconds."""
        self._distribution.update(round(seconds * 1000))


class DocumentStage(Timed, Generic[In, Out]):
    """Applies a pure function to each document.

    A document that the function refuses flows on as a dead letter, and so does one that an earlier stage refused:
    every document that was read leaves the last stage, one way or the other.

    Args:
        name: Name of the stage, for its counter of milliseconds.
        function: The function; raises `DocumentError` for a document it refuses.
    """

    def __init__(self, name: str, function: Callable[[In], Out]) -> None:
        super().__init__(f"{name}_ms")
        self._function = function

    def start_bundle(self) -> None:
        """Starts the stage's watch."""
        self._seconds = 0.0

    def process(self, element: In | DeadLetter) -> Iterable[Out | DeadLetter]:
        """The result for one document, or its dead letter."""
        if isinstance(element, DeadLetter):
            return [element]
        begin = time.process_time()
        try:
            return [self._function(element)]
        except DocumentError as error:
            return [dead_letter(element, error)]
        finally:
            self._seconds += time.process_time() - begin

    def finish_bundle(self) -> None:
        """Reports the time spent."""
        self.spent(self._seconds)
