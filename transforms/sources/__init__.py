"""Where documents come from: which files there are, how reading is cut into tasks, and reading itself.

Pure functions; nothing here knows of Beam. One bad row, object or file gives a dead letter and the rest goes
on; what may work on a second try (a broken connection) is raised.
"""

from __future__ import annotations

from collections.abc import Iterator

from transforms.records import DeadLetter, RawDocument
from transforms.sources.estimate import estimated_bytes
from transforms.sources.files import SourceFile, address_id, match, names, naming
from transforms.sources.objects import read_objects
from transforms.sources.settings import ReadSettings
from transforms.sources.tables import check_columns, plan_table, read_table
from transforms.sources.tasks import ReadTask, plan_objects

__all__ = [
    "ReadSettings",
    "ReadTask",
    "SourceFile",
    "address_id",
    "check_columns",
    "estimated_bytes",
    "match",
    "names",
    "naming",
    "plan",
    "plan_objects",
    "read",
]


def plan(file: SourceFile, settings: ReadSettings) -> Iterator[ReadTask | DeadLetter]:
    """The tasks that read `file`, and a dead letter for each part of it that cannot be read."""
    return plan_table(file, settings) if file.format == "parquet" else plan_objects([file], settings)


def read(task: ReadTask, settings: ReadSettings) -> Iterator[RawDocument | DeadLetter]:
    """The documents of `task` in order, and a dead letter for each that cannot be read."""
    return read_table(task, settings) if task.row_groups else read_objects(task, settings)
