"""The files of a table written anew, fewer and larger ones or by another number of shards, with the same rows.

It is a commit like any other: what was there stays readable as it was, and a reader of manifests sees the old
files or the new ones. No id changes, so those who follow `changes/` and `deletes/` have nothing to do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from math import gcd
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.commit import abort, finish, overtaken, rewrite
from transforms.errors import CommitError, ConfigError
from transforms.packs import merge, shard_of, wide
from transforms.parquet_files import Layout, chunker_in
from transforms.paths import STAGING, FileEntry, Kind
from transforms.provenance import Run
from transforms.rows import PLACE
from transforms.run_report import Report, versions
from transforms.schemas import SCHEMAS
from transforms.shards import write_rows
from transforms.table import Store, Table, existing_table

_KINDS: tuple[Kind, ...] = ("chunks", "documents", "dead_letters")
_ROWS = {kind: pa.schema([(f.name, wide(f.type)) for f in SCHEMAS[kind]]) for kind in _KINDS}
# The order of the rows; that of side tables goes on through all columns, so that it does not depend on the old files.
_ORDER = {
    kind: [*PLACE, *(name for name in SCHEMAS[kind].names if name not in (*PLACE, "text"))] for kind in _KINDS
} | {"chunks": ["document_id", "chunk_index"]}
_MOST_SHARDS = 100_000


def compact(output: str, shards: int | None = None, layout: Layout | None = None) -> Report:
    """Merge the small files of a table, and give it another number of shards if told to.

    It takes memory for the rows of one shard in one partition, and temporary disk space for those of one partition
    where files have to be taken apart.

    Args:
        output: Root of the table.
        shards: Shards that the table is to have, 1 to 100,000; None for as many as it has.
        layout: How files are cut and encoded; None for the standard one, with the encodings of the table.

    Returns:
        What was done: files, rows and bytes `before` and `after`, by kind.

    Raises:
        ConfigError: If there is no table, or the number of shards is refused.
        CommitError: If another run was faster, or a file cannot be read. The table is as it was.
    """
    table = existing_table(output)
    held = table.shards or 1
    if shards is not None and not 1 <= shards <= _MOST_SHARDS:
        raise ConfigError("shards", shards, f"a table has 1 to {_MOST_SHARDS:,} shards")
    finish(table, output)
    run = _run(table, shards or held)
    layout = layout or Layout(profile="compat" if run.settings.get("compat") else "standard")
    groups = list(_groups(table, held, run.shards, layout))
    files: dict[str, FileEntry] = {}
    try:
        for entry in _new_files(table, groups, run, output, layout):
            files[entry.path] = entry
        report = _report(table, files, run)
        if report["outcome"] == "committed":
            rewrite(table, files, run, output, report)
    except BaseException as error:
        # What was moved is known here too if the winner of a race has removed what this one had staged.
        abort(output, run.run_id, files.keys() - table.files.keys())
        _tell_of_others(table, run, output, error)
        raise
    for killed in _killed(output, run.run_id, report["seq"]):
        abort(output, killed)
    return report


def _run(table: Table, shards: int) -> Run:
    """The commit to be, which tells of no settings of its own: the rows are those of the commits before."""
    last: Mapping[str, Any] = table.last or {}
    return Run(
        run_id=f"compact-{table.seq:08d}-{uuid4().hex[:12]}",
        created_at=last["created_at"],
        mode="compact",
        shards=shards,
        settings=last["settings"],
        partition_by=table.partition_by,
    )


# What is to be written anew.


@dataclass(frozen=True, slots=True)
class _Group:
    """Files of one folder, and the shards to which their rows go and no other rows of the folder.

    Args:
        kind: The table they belong to.
        folder: Their folder.
        files: The files.
        shards: The shards.
    """

    kind: Kind
    folder: str
    files: Sequence[FileEntry]
    shards: range


def _groups(table: Table, held: int, shards: int, layout: Layout) -> Iterator[_Group]:
    # A document whose hash is h was in the shard h % held and goes to h % shards, equal in their remainders by this.
    common = gcd(held, shards)
    found: defaultdict[tuple[Kind, str, int], list[FileEntry]] = defaultdict(list)
    for entry in table.files.values():
        if entry.kind in _KINDS and entry.rows:
            found[entry.kind, entry.folder, entry.shard % common].append(entry)
    for (kind, folder, remainder), files in sorted(found.items()):
        if held != shards or not _is_compact(files, layout):
            yield _Group(kind, folder, files, range(remainder, shards, common))


def _is_compact(files: Iterable[FileEntry], layout: Layout) -> bool:
    """Whether the files of a shard are what one writer would make of their rows."""
    ordered = sorted(files, key=lambda entry: (entry.min_document_id or "", entry.max_document_id or ""))
    edges = [edge for entry in ordered for edge in (entry.min_document_id or "", entry.max_document_id or "")]
    return edges == sorted(edges) and all(entry.bytes >= layout.file_bytes for entry in ordered[:-1])


# Writing it.


def _new_files(
    table: Table, groups: Sequence[_Group], run: Run, output: str, layout: Layout
) -> Iterator[FileEntry]:
    """All files that the table is to have."""
    store = Store(output, run.run_id)
    old = {entry.path for group in groups for entry in group.files}
    yield from (entry for path, entry in table.files.items() if path not in old)
    for group in groups:
        chunker = _chunker(store, group.files[0])
        for shard, rows in _by_shard(store, group):
            order = pc.sort_indices(rows, [(name, "ascending") for name in _ORDER[group.kind]]).to_numpy()
            folder = group.folder.partition("/")[2]
            yield from write_rows(group.kind, shard, folder, chunker, rows, order, run, output, layout)


def _by_shard(store: Store, group: _Group) -> Iterator[tuple[int, pa.Table]]:
    """The rows of a group, one shard after the other."""
    schema = _ROWS[group.kind]
    batches = (batch for entry in group.files for batch in _read(store, entry))
    if len(group.shards) == 1:
        yield group.shards[0], merge(schema, list(batches))
        return
    with TemporaryDirectory(prefix="chunkmill-compact-") as folder:
        for batch in batches:
            for shard, rows in _split(batch, group.shards.stop):
                _append(Path(folder, str(shard)), rows)
        for shard in group.shards:
            path = Path(folder, str(shard))
            if path.exists():
                yield shard, merge(schema, list(_appended(path)))
                path.unlink()


def _read(store: Store, entry: FileEntry) -> Iterator[pa.RecordBatch]:
    """The rows of a file, in columns that hold more than 2 GiB; a column that it lacks is null."""
    schema = _ROWS[entry.kind]
    with _parquet(store, entry) as file:
        if (rows := file.metadata.num_rows) != entry.rows:
            message = f"{entry.path} has {rows} rows, and its manifest says {entry.rows}"
            raise CommitError(f"{message}; nothing was changed")
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, use_threads=False)
            columns = [
                group[f.name].cast(f.type) if f.name in group.column_names else pa.nulls(len(group), f.type)
                for f in schema
            ]
            yield from pa.table(columns, schema=schema).to_batches()


def _chunker(store: Store, entry: FileEntry) -> str | None:
    """The chunker of a file, as canonical JSON."""
    with _parquet(store, entry) as file:
        return chunker_in(file.schema_arrow)


@contextmanager
def _parquet(store: Store, entry: FileEntry) -> Iterator[pq.ParquetFile]:
    """A file, also if another commit has replaced it meanwhile, which comes out at the end."""
    try:
        with store.opened_data(entry.path) as file:
            yield pq.ParquetFile(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise CommitError(f"{entry.path} cannot be read, and nothing was changed: {error}") from error


def _split(batch: pa.RecordBatch, shards: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch by their shard."""
    ids: Any = batch["document_id"].dictionary_encode()
    homes: Any = pa.array([shard_of(value, shards) for value in ids.dictionary.to_pylist()], pa.int64())
    shard_of_row = homes.take(ids.indices)
    for shard in sorted(set(homes.to_pylist())):
        yield shard, batch.filter(pc.equal(shard_of_row, shard))


def _append(path: Path, rows: pa.RecordBatch) -> None:
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with path.open("ab") as file, pa.ipc.new_stream(file, rows.schema, options=options) as stream:
        stream.write_batch(rows)


def _appended(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file:
        while file.tell() < file.size():
            with pa.ipc.open_stream(file) as stream:
                yield from stream


# When it ends, one way or the other.


def _tell_of_others(table: Table, run: Run, output: str, error: BaseException) -> None:
    """Say what is behind an error, if another run was faster."""
    last = Table(output).last if isinstance(error, CommitError | OSError) else None
    if last and last["seq"] > table.seq:
        raise overtaken(last, run.run_id) from error


def _killed(output: str, run_id: str, seq: int) -> Iterator[str]:
    """Compactions that have left something and can never be committed, and this one if it had nothing to do."""
    for name in Store(output, run_id).names(STAGING):
        found = re.fullmatch(r"compact-(\d{8})-[0-9a-f]{12}", name)
        if name == run_id or (found and int(found[1]) < seq):
            yield name


# What was done.


def _report(table: Table, files: Mapping[str, FileEntry], run: Run) -> Report:
    replaced = table.files.keys() - files.keys()
    changed = files.keys() != table.files.keys() or table.shards != run.shards
    return {
        "run_id": run.run_id,
        "created_at": datetime.fromtimestamp(run.created_at / 1e6, timezone.utc).isoformat(),
        "mode": run.mode,
        "outcome": "committed" if changed else "unchanged",
        "seq": table.seq + changed,
        "shards": {"before": table.shards, "after": run.shards},
        "before": _sizes(table.files.values()),
        "after": _sizes(files.values()),
        "replaced_files": len(replaced),
        "versions": versions(),
    }


def _sizes(entries: Iterable[FileEntry]) -> dict[str, dict[str, int]]:
    held = list(entries)
    return {
        kind: {
            "files": sum(entry.kind == kind for entry in held),
            "rows": sum(entry.rows for entry in held if entry.kind == kind),
            "bytes": sum(entry.bytes for entry in held if entry.kind == kind),
        }
        for kind in _KINDS
    }


def summary(report: Report) -> str:
    """What a compaction did, as lines of plain text."""
    return "\n".join(f"{name:<14}{text}" for name, text in _lines(report))


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    for kind, before in report["before"].items():
        after = report["after"][kind]
        size = f"{before['bytes'] / 1e6:,.1f} to {after['bytes'] / 1e6:,.1f} MB"
        yield kind, f"{before['files']:,} to {after['files']:,} files, {size}, {after['rows']:,} rows"
    yield "shards", f"{report['shards']['before']:,} to {report['shards']['after']:,}"
    yield "table", f"{report['outcome']}, commit {report['seq']}"
