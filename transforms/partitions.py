"""Further folders of the chunks, by what their documents say: `chunker=.../source=.../by_language=en`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from transforms.errors import CommitError, ConfigError
from transforms.provenance import canonical_json
from transforms.schemas import CHUNKS

COLUMNS = ("title", "language", "media_type", "license", "tenant_id")
MISSING = "unknown"
"""The value of what has none."""
MOST_VALUES = 1_000


def folder_key(key: str) -> str:
    """Name of a key in paths; no file has a column of that name, which some readers forbid."""
    return "by_" + re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_")


def column_of(key: str) -> str:
    """The column that holds the values of a key."""
    return key if key in COLUMNS else "metadata"


def check_keys(keys: Sequence[str]) -> None:
    """Refuse keys that no table can be partitioned by.

    Args:
        keys: Columns of documents, or keys of their metadata.

    Raises:
        ConfigError: If a key is another column, cannot be the name of a folder, or is there twice.
    """
    for key in keys:
        if key in CHUNKS.names and key not in COLUMNS:
            known = ", ".join(COLUMNS)
            raise ConfigError(
                "partition_by", key, f"name one of {known}, or a key of the documents' metadata"
            )
        if not re.fullmatch(r"[\x20-\x7e]{1,60}", key) or folder_key(key) == "by_":
            raise ConfigError(
                "partition_by", key, "a key needs letters or digits, all ASCII, at most 60 characters"
            )
    folders = [folder_key(key) for key in keys]
    for key, folder in zip(keys, folders, strict=True):
        if folders.count(folder) > 1:
            raise ConfigError("partition_by", key, f"two keys have the folders {folder}=")


def partition_values(rows: pa.Table | pa.RecordBatch, key: str) -> list[str | None]:
    """What each row's document says of a key; text of metadata as it is, anything else as JSON.

    Args:
        rows: Rows with the columns of documents.
        key: A column, or a key of `metadata`.
    """
    values: list[str | None] = rows[column_of(key)].to_pylist()
    return values if key in COLUMNS else [_of_metadata(metadata, key) for metadata in values]


def _of_metadata(metadata: str | None, key: str) -> str | None:
    value = json.loads(metadata).get(key) if metadata else None
    return value if value is None or isinstance(value, str) else canonical_json(value)


def folder_values(path: str) -> dict[str, str]:
    """The keys of a path with their values, the chunker's and the source's among them."""
    pairs = (folder.partition("=") for folder in path.split("/"))
    return {key: value for key, equals, value in pairs if equals}


def check_counts(keys: Sequence[str], paths: Iterable[str]) -> None:
    """Refuse so many values of a key that the table would be nothing but small files.

    Args:
        keys: The keys.
        paths: Paths of the partitions.

    Raises:
        CommitError: If a key has too many values.
    """
    held = [folder_values(path) for path in paths] if keys else []
    for key in keys:
        if (count := len({values[folder_key(key)] for values in held})) > MOST_VALUES:
            raise CommitError(
                f"partition_by={key!r}: there are {count:,} values, and at most {MOST_VALUES:,} may be; "
                "partition by something coarser"
            )


def check_known(keys: Sequence[str], paths: Iterable[str]) -> None:
    """Refuse a key of metadata that no document has, since it is most likely misspelt.

    Args:
        keys: The keys.
        paths: Paths of all partitions that hold chunks.

    Raises:
        CommitError: If there are partitions, and none has a value for a key.
    """
    held = [folder_values(path) for path in paths] if keys else []
    for key in keys:
        if held and key not in COLUMNS and {values[folder_key(key)] for values in held} == {MISSING}:
            raise CommitError(f"partition_by={key!r}: no document's metadata has a value for it")
