"""The past of a table: its commits, its files as they were after each, and the end of what is no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow.dataset as ds

from transforms.errors import ConfigError
from transforms.paths import STAGING, slug
from transforms.schemas import CHUNKS, SCHEMAS
from transforms.storage import filesystem
from transforms.table import DATA_FILE, REPLACED, Manifest, Store, Table, each, existing_table


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a table.

    Args:
        seq: Its number, from 1.
        run_id: The run that made it.
        created_at: Logical time of the run, microseconds since 1970 in UTC.
        mode: How it met what was there.
        added: Data files it added.
        removed: Data files it replaced.
        chunks: Chunks of the table after it.
        documents: Documents of the table after it, once for each chunker.
        tokens: Tokens of those chunks.
        chunkers: Chunkers of the run, as their partitions are named.
    """

    seq: int
    run_id: str
    created_at: int
    mode: str
    added: int
    removed: int
    chunks: int
    documents: int
    tokens: int
    chunkers: tuple[str, ...]

    def __str__(self) -> str:
        time = datetime.fromtimestamp(self.created_at / 1e6, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        return (
            f"{self.seq:>5}  {time}  {self.run_id}  {self.mode}: {self.added} files added, {self.removed} replaced; "
            f"{self.documents:,} documents, {self.chunks:,} chunks, {self.tokens:,} tokens; {', '.join(self.chunkers)}"
        )


def history(output: str) -> list[Commit]:
    """The commits of a table, oldest first.

    Args:
        output: Root of the table.

    Raises:
        ConfigError: If there is no table.
        CommitError: If a manifest is missing, or is none.
    """
    return [_commit(manifest) for manifest in _existing(output).manifests]


def source_names(output: str) -> list[str]:
    """Names of the sources whose documents a table holds.

    Args:
        output: Root of the table.

    Raises:
        CommitError: If a manifest is missing, or is none.
    """
    table = Table(output)
    held = {entry.partition.rpartition("=")[2] for entry in table.files.values() if entry.kind == "documents"}
    named = {manifest["settings"].get("read", {}).get("source_name") for manifest in table.manifests}
    return sorted(name for name in named if name and slug(name) in held)


def reading_of(output: str, source_name: str | None = None) -> dict[str, Any]:
    """How the documents of the last commit were read and parsed, by setting; empty if no commit says.

    Args:
        output: Root of the table.
        source_name: The source to look for; None for that of the last commit.

    Raises:
        CommitError: If a manifest is missing, or is none.
    """
    for manifest in reversed(Table(output).manifests):
        settings = manifest["settings"]
        read, parse = settings.get("read"), settings.get("parse")
        if (
            isinstance(read, dict)
            and isinstance(parse, dict)
            and source_name in (None, read.get("source_name"))
        ):
            return {**read, **parse}
    return {}


def dataset(output: str, at: int | str | None = None) -> ds.Dataset:
    """The chunks of a table after one of its commits.

    Args:
        output: Root of the table.
        at: Number of the commit, or id of the run that made it; None for the last one.

    Raises:
        ConfigError: If there is no table or no such commit, or if `vacuum` has removed files of it.
    """
    table = _existing(output, at)
    store = Store(output, "reader")
    names = sorted(path for path, entry in table.files.items() if entry.kind == "chunks")
    paths = [path for found in each(lambda name: _place(store, name), names) for path in found]
    if len(paths) < len(names):
        raise ConfigError("at", at, f"{len(names) - len(paths)} files of that commit were removed by vacuum")
    fs, _ = filesystem(output)
    return ds.dataset([store.at(path) for path in paths], CHUNKS, "parquet", fs)


def vacuum(output: str, before: int, *, dry_run: bool = False) -> list[str]:
    """Remove what no reader of the table as it is now needs: replaced files, and what runs left that never ended.

    Earlier commits that used the files cannot be read any more.

    Args:
        output: Root of the table.
        before: Only what was last changed before this time is removed, microseconds since 1970 in UTC.
        dry_run: Whether to remove nothing.

    Returns:
        Paths of the removed files, relative to the root.

    Raises:
        ConfigError: If there is no table.
    """
    table = _existing(output)
    store = Store(output, "vacuum")
    strays = [
        path
        for folder in (REPLACED, STAGING, *SCHEMAS)
        for path, changed_at in store.walk(folder)
        if changed_at < before and path not in table.files and _is_ours(path)
    ]
    if not dry_run:
        store.remove(strays)
    return sorted(strays)


def _existing(output: str, at: int | str | None = None) -> Table:
    table = existing_table(output)
    if at is None:
        return table
    for manifest in table.manifests:
        if at in (manifest["seq"], manifest["run_id"]):
            return Table(output, manifest["seq"])
    raise ConfigError("at", at, f"is no commit and no run of the table; it has the commits 1 to {table.seq}")


def _commit(manifest: Manifest) -> Commit:
    totals: dict[str, Any] = manifest["totals"]
    return Commit(
        seq=manifest["seq"],
        run_id=manifest["run_id"],
        created_at=manifest["created_at"],
        mode=manifest["mode"],
        added=len(manifest["added"]),
        removed=len(manifest["removed"]),
        chunks=totals["chunks"]["rows"],
        documents=totals["documents"]["documents"],
        tokens=totals["chunks"]["tokens"],
        chunkers=tuple(sorted(manifest["chunkers"])),
    )


def _place(store: Store, path: str) -> Iterator[str]:
    """Where a file of some commit lies now, if it is there."""
    return iter([each for each in (path, f"{REPLACED}/{path}") if store.size(each) is not None][:1])


def _is_ours(path: str) -> bool:
    """Whether this program made a file: nothing that others put beside the table is ever removed."""
    return path.startswith(f"{STAGING}/") or bool(DATA_FILE.fullmatch(path.removeprefix(f"{REPLACED}/")))
