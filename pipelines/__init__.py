"""The job, the command that runs it, and the table that it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["read_table"]


def read_table(root: str, at: int | str | None = None) -> ds.Dataset:
    """The committed chunks of a table, as they are now or were after an earlier commit.

    Args:
        root: Root of the table, local or in an object store.
        at: Number of a commit, or id of the run that made it; None for the last one.

    Raises:
        ConfigError: If there is no table or no such commit, or if `vacuum` has removed files of it.
    """
    # Reading a table costs more to import than all else that this package does at first.
    from transforms.history import dataset

    return dataset(root, at)
