"""Parquet files: a document a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.errors import ConfigError, ReadError
from transforms.records import DeadLetter, RawDocument
from transforms.sources.files import SourceFile
from transforms.sources.rows import documents
from transforms.sources.settings import MIB, ReadSettings, find_fault, used_columns
from transforms.sources.tasks import ReadTask
from transforms.storage import filesystem, is_transient

_BATCH_ROWS = 1_024
_BATCH_BYTES = 8 * MIB
_WORST_BATCH_BYTES = 256 * MIB

# What a file may unfold to. Zstandard packs a repeated phrase 9,000 to 1; a bomb goes beyond 100,000.
_MAX_RATIO = 20_000
_FREE_BYTES = 64 * MIB
_MAX_ROWS_PER_BYTE = 100
_FREE_ROWS = 100_000


def check_columns(file: SourceFile, settings: ReadSettings) -> bool:
    """Whether the Parquet file `file` could tell that `settings` fit its columns.

    A file that has no rows or cannot be read tells nothing; the job makes nothing or a dead letter of it.

    Raises:
        ConfigError: If they do not fit; it names the column, what the file has, and the flag.
    """
    try:
        with opened(file) as (_, table):
            fault = find_fault(table.schema_arrow, settings)
            if table.metadata.num_rows == 0:
                return False
    except ReadError:
        return False
    if fault:
        raise ConfigError(fault.setting, fault.value, f"{file.uri}: {fault.message}")
    return True


def plan_table(file: SourceFile, settings: ReadSettings) -> Iterator[ReadTask | DeadLetter]:
    """Tasks of at most `task_bytes`, or one row group, each; a dead letter for what cannot be read."""
    try:
        with opened(file) as (_, table):
            steps = list(_tasks(file, table, settings))
    except ReadError as error:
        steps = [file.failed(settings.source_name, error.reason, error.message)]
    yield from steps


def read_table(task: ReadTask, settings: ReadSettings) -> Iterator[RawDocument | DeadLetter]:
    """The documents of some row groups; a dead letter for what a damaged row group still held."""
    (file,) = task.files
    first, end = task.first_row, task.first_row + task.documents
    try:
        with opened(file) as (handle, table):
            columns = used_columns(table.schema_arrow, settings)
            for group in task.row_groups:
                rows = table.metadata.row_group(group).num_rows
                yield from _read_group(handle, table, group, columns, file, first, settings)
                first += rows
    except ReadError as error:
        yield file.failed(settings.source_name, error.reason, error.message, end - first)


def _read_group(
    handle: IO[bytes],
    table: pq.ParquetFile,
    group: int,
    columns: Mapping[str, str],
    file: SourceFile,
    first: int,
    settings: ReadSettings,
) -> Iterator[RawDocument | DeadLetter]:
    rows = table.metadata.row_group(group).num_rows
    names = sorted({*columns.values(), *settings.metadata_columns})
    done = unfolded = 0
    try:
        cost = _Cost.of(table, group, names, file)
        for batch in _batches(table, group, names, cost.batch_rows(handle)):
            given = 0
            for item in documents(batch, columns, file, first + done, settings):
                given += len(item.content) if isinstance(item, RawDocument) else 0
                yield item
            done += batch.num_rows
            unfolded += max(given, batch.nbytes)
            if done < rows:
                _refuse_bomb(cost.stored, unfolded, done)
        if done < rows:
            raise ReadError("corrupt", "rows that the footer counts are not there")
    except ReadError as error:
        message = f"row group {group}, rows {first + done} to {first + rows - 1}: {error.message}"
        yield file.failed(settings.source_name, error.reason, message, rows - done)


def _tasks(
    file: SourceFile, table: pq.ParquetFile, settings: ReadSettings
) -> Iterator[ReadTask | DeadLetter]:
    with _translated("not_parquet"):
        row_groups = [table.metadata.row_group(group) for group in range(table.metadata.num_row_groups)]
    counts = [row_group.num_rows for row_group in row_groups]
    if sum(counts) != table.metadata.num_rows or min(counts, default=0) < 0:
        raise ReadError("not_parquet", "the footer is damaged: the rows of the row groups do not add up")
    if not sum(counts):
        return
    if fault := find_fault(table.schema_arrow, settings):
        yield file.failed(settings.source_name, fault.reason, fault.message, sum(counts))
        return
    first = size = 0
    groups: list[int] = []
    for group, row_group in enumerate(row_groups):
        if groups and size + row_group.total_byte_size > settings.task_bytes:
            rows = sum(counts[at] for at in groups)
            yield ReadTask((file,), rows, tuple(groups), first)
            first, size, groups = first + rows, 0, []
        if row_group.num_rows:
            groups.append(group)
            size += row_group.total_byte_size
    yield ReadTask((file,), sum(counts[at] for at in groups), tuple(groups), first)


class _Cost(NamedTuple):
    """What the footer says of the columns that are read of a row group."""

    rows: int
    size: int
    stored: int
    chunks: Sequence[Any]

    @classmethod
    def of(cls, table: pq.ParquetFile, group: int, names: list[str], file: SourceFile) -> _Cost:
        row_group = table.metadata.row_group(group)
        _refuse_bomb(file.size, row_group.total_byte_size, row_group.num_rows)
        schema = table.metadata.schema
        paths = [schema.column(at).path for at in range(len(schema))]
        used = [at for at, path in enumerate(paths) if path in names or path.partition(".")[0] in names]
        # Asked about the columns of a damaged footer, pyarrow ends the process; to begin reading them only raises.
        # No rows are read, since the first of them unfolds a page and a dictionary of each column.
        with _translated("corrupt"):
            next(table.reader.iter_batches(0, [group], used, use_threads=False), None)
        chunks = [row_group.column(at) for at in used]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        stored = sum(chunk.total_compressed_size for chunk in chunks)
        if not 0 <= stored <= file.size:
            raise ReadError("corrupt", "the footer is damaged")
        _refuse_bomb(stored, size, max(chunk.num_values for chunk in chunks))
        return cls(row_group.num_rows, size, stored, chunks)

    def batch_rows(self, handle: IO[bytes]) -> int:
        """Rows to hold at a time, by their mean size, and by the worst that a dictionary allows."""
        rows = min(max(_BATCH_BYTES * self.rows // max(self.size, 1), 1), _BATCH_ROWS)
        for chunk in self.chunks:
            if rows * chunk.total_uncompressed_size > _WORST_BATCH_BYTES:
                worst = _dictionary_bytes(handle, chunk)
                rows = min(rows, max(_WORST_BATCH_BYTES // max(worst, 1), 1))
        return rows


def _refuse_bomb(stored: int, size: int, values: int) -> None:
    if size > max(_FREE_BYTES, _MAX_RATIO * stored) or values > _FREE_ROWS + _MAX_ROWS_PER_BYTE * stored:
        raise ReadError("bomb", f"{stored} bytes unfold to {size} bytes and {values} values or more")


def _dictionary_bytes(handle: IO[bytes], chunk: Any) -> int:
    """Bytes of a column's dictionary page, 0 if it has none.

    Each of many rows can hold a value of that size, and the footer counts it once.
    """
    with _translated("corrupt"):
        start = chunk.data_page_offset
        handle.seek(min(start, chunk.dictionary_page_offset or start))
        head = iter(handle.read(16))
    # The page header begins with its type and its unfolded size, both zigzag varints behind a field mark.
    numbers = []
    for _ in range(2):
        if next(head, 0) != 0x15:
            return 0
        number = shift = 0
        for byte in head:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append(number >> 1)
    kind, size = numbers
    return size if kind == 2 else 0


def _batches(table: pq.ParquetFile, group: int, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    with _translated("corrupt"):
        batches = table.iter_batches(rows, row_groups=[group], columns=names, use_threads=False)
    while True:
        with _translated("corrupt"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def opened(file: SourceFile) -> Iterator[tuple[IO[bytes], pq.ParquetFile]]:
    """The open file and its footer; raises ReadError."""
    store, path = filesystem(file.uri)
    with _translated("unreadable"):
        handle = store.open(path, "rb", cache_type="none")
    with handle:
        with _translated("not_parquet"):
            size = handle.seek(0, 2)
            if size != file.size:
                raise ReadError(
                    "changed", f"the file has {size} bytes; it had {file.size} when it was listed"
                )
            table = pq.ParquetFile(handle, pre_buffer=False, buffer_size=MIB, page_checksum_verification=True)
            _ = table.schema_arrow  # raises for types that Arrow does not know
        yield handle, table


@contextmanager
def _translated(reason: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_transient(error):
            raise
        if error.errno is None:
            raise ReadError(reason, str(error)) from error
        raise ReadError("unreadable", error.strerror or str(error)) from error
    except (ValueError, LookupError, pa.ArrowException) as error:
        raise ReadError(reason, str(error)) from error
