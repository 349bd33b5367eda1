"""The pieces of work that reading is cut into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transforms.sources.files import SourceFile
from transforms.sources.settings import ReadSettings

MAX_OBJECTS = 1_000


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A piece of work: a bundle of objects, or some row groups of one table.

    Args:
        files: The objects, or the table.
        documents: Documents it should give.
        row_groups: Row groups of the table, in order; none for objects.
        first_row: Position of the first row of the first row group in the table.
    """

    files: tuple[SourceFile, ...]
    documents: int
    row_groups: tuple[int, ...] = ()
    first_row: int = 0


def plan_objects(files: Iterable[SourceFile], settings: ReadSettings) -> Iterator[ReadTask]:
    """Bundles of at most `task_bytes` and 1,000 objects, in the order given; a large object is one alone."""
    bundle: list[SourceFile] = []
    size = 0
    for file in files:
        if bundle and (size + file.size > settings.task_bytes or len(bundle) == MAX_OBJECTS):
            yield ReadTask(tuple(bundle), len(bundle))
            bundle, size = [], 0
        bundle.append(file)
        size += file.size
    if bundle:
        yield ReadTask(tuple(bundle), len(bundle))
