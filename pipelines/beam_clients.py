"""Beam's own clients of object stores and of BigQuery; Chunkmill reads and writes through fsspec instead."""

from __future__ import annotations

import sys

_CLIENTS = (
    "apache_beam.io.aws.s3filesystem",
    "apache_beam.io.azure.blobstoragefilesystem",
    "apache_beam.io.gcp.bigquery",
    "apache_beam.io.gcp.gcsfilesystem",
)


def leave_out() -> None:
    """Has Beam, before it is imported, take these clients for not installed: they take up to half of its import.

    It is for a process that runs nothing else, and whose runner puts no file of Beam's own into a store.
    """
    for client in _CLIENTS:
        # As Python marks what is not to be found.
        sys.modules.setdefault(client, None)  # type: ignore[arg-type]
