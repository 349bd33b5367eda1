"""A committed table, read by programs that know nothing of this one: each gives the same rows."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaGateway
from staged import staged

from transforms.commit import commit
from transforms.parquet_files import Layout
from transforms.partitions import folder_values
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Location, Source
from transforms.schemas import SCHEMAS

Row = dict[str, Any]

CHUNKER = ChunkerRecord("recursive", 1, "0012345678901234", '{"chunk_size":10}', "character", "ff", 10)
OTHER = replace(CHUNKER, name="token", hash="12e4567800000000")
# Row groups and files of a few rows, so that every reader has many of both.
SMALL = Layout(row_group_rows=5, file_bytes=20_000)
KEYS = ("language", "team")

LANGUAGES = [
    "en",
    "EN",
    "",
    None,
    "日本語",
    "a/b",
    "a%2Fb",
    "..",
    "007",
    "7",
    "12e45678",
    "2024-01-02",
    "x" * 300,
]
# Readers take some words for values of other types, though only where all values of a key are such words.
TEAMS = ["true", True, False, "null", "nan", "inf", "infinity", "epoch", "__HIVE_DEFAULT_PARTITION__"]
TEXTS = [
    "Plain words.",
    "Größe 🙂 e\u0301",
    "a\r\nb\tc",
    '"quoted", \\ and \u2028',
    "null",
    "0x1F",
    "العربية",
]
SOURCES = ["documents", "Été 2024", "12e45678"]


def document(number: int) -> Document:
    """A document with some facts and without others, in turn."""
    return Document(
        f"{number:03d}",
        "".join(TEXTS) * 2,
        media_type="text/plain",
        title=[None, "", "Title"][number % 3],
        language=LANGUAGES[number % len(LANGUAGES)],
        acl_labels=[None, (), ("a", "b,c", "")][number % 3],  # type: ignore[arg-type]
        tenant_id=[None, "007"][number % 2],
        metadata={"team": TEAMS[0 if number % 2 else number // 2 % len(TEAMS)], "n": [1, {"deep": None}]},
        source=Source(
            SOURCES[number % 3],
            f"s3://bucket/a b/{number}.txt",
            row=[None, number][number % 2],
            size=number,
            modified_at=1_700_000_000_123_456 + number,
        ),
    )


def chunks(of: Document, chunker: ChunkerRecord) -> Iterator[Chunk]:
    """Chunks of one span and of two, with pages, headings and images, and without."""
    at = 0
    first = None
    for index, text in enumerate(TEXTS * 2):
        name = hashlib.sha256(f"{of.document_id}/{index}/{chunker.hash}".encode()).hexdigest()[:32]
        first = first or name
        middle = at + len(text) // 2
        whole, parts = ((at, at + len(text)),), ((at, middle), (middle, at + len(text)))
        box = (0.5, -1.0, 1e300, 0.1)
        places = (), (Location(1),), (Location(2, box), Location(3, None))
        yield Chunk(
            name,
            of.document_id,
            index,
            text,
            len(text),
            parts if index % 2 else whole,
            (at, at + len(text.encode())),
            0,
            (1, index + 1),
            "body",
            "recursive",
            heading_level=[None, 2][index % 2],
            heading_path=[(), ("Ä",), ("one", "two", "")][index % 3],
            parent_id=first if index else None,
            context=[None, "", "one > two"][index % 3],
            locations=places[index % 3],
            images=[(), ("i.png", "")][index % 2],
            over_budget=index % 5 == 0,
        )
        at += len(text)


def write(output: Path, run: Run, elements: Sequence[DocumentChunks | DeadLetter]) -> None:
    """Commit a run."""
    commit(staged(str(output), run, elements, CHUNKER, SMALL), run, str(output), [CHUNKER, OTHER])


def cut(number: int, chunker: ChunkerRecord = CHUNKER) -> DocumentChunks:
    """A document that was cut."""
    found = document(number)
    return DocumentChunks(found, list(chunks(found, chunker)), "ok", chunker, notes={"noted": number})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of several runs and two chunkers, partitioned by two keys."""
    output = tmp_path_factory.mktemp("read_back") / "out"
    run = Run("first", 1_700_000_000_000_001, shards=2, keep_text=True, partition_by=KEYS)
    letters = [DeadLetter(f"x{n}", "read", "broken", "Ö\n", Source(SOURCES[n], f"u{n}")) for n in range(3)]
    write(output, run, [*map(cut, range(20)), *(cut(number, OTHER) for number in range(8)), *letters])
    write(output, replace(run, run_id="second", mode="append", job_id="j"), [*map(cut, range(20, 26))])
    # All that the second source had by one chunker, but for a document.
    write(output, replace(run, run_id="third"), [*map(cut, range(4, 26, 3))])
    return output


# What all must give: the rows of each file by itself, and the folders it lies in.


def held(output: Path, kind: str) -> list[Row]:
    """The rows of the files, with the values of their folders."""
    return [
        row | folder_values(str(file.relative_to(output).parent))
        for file in sorted((output / kind).rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]


def plain(value: Any) -> Any:
    """A value as JSON has it, times in UTC to the microsecond."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def canonical(rows: Sequence[Row]) -> list[str]:
    """The rows as sorted lines."""
    return sorted(json.dumps(plain(row), sort_keys=True) for row in rows)


def test_the_table_has_what_readers_stumble_over(table: Path) -> None:
    rows = held(table, "chunks")
    files = list((table / "chunks").rglob("*.parquet"))
    assert len(rows) == 33 * len(TEXTS) * 2
    assert max(pq.read_metadata(file).num_row_groups for file in files) > 1
    folders = Counter(file.parent for file in files)
    assert max(folders.values()) > 1
    assert len({row["by_language"] for row in rows}) == len(LANGUAGES) - 1  # empty and null are one
    assert len({row["by_team"] for row in rows}) == len(TEAMS) - 1  # the word true and the value are one
    assert {(row["document_id"], row["language"]) for row in rows} == {
        (f"{number:03d}", document(number).language) for number in range(26)
    }
    for name in SCHEMAS["chunks"].names:
        values = [row[name] for row in rows]
        if name in (
            "title",
            "language",
            "acl_labels",
            "tenant_id",
            "spans",
            "context",
            "heading_level",
            "parent_id",
        ):
            assert None in values, name
            assert any(value is not None for value in values), name


# The readers. Each gives rows, the types of its partition columns, and counts by them.

Read = tuple[list[Row], set[str], list[Row]]


def by_pyarrow(folder: Path, keys: Sequence[str]) -> Read:
    dataset = ds.dataset(folder, partitioning="hive")
    counts = dataset.to_table(columns=list(keys)).group_by(list(keys)).aggregate([([], "count_all")])
    types = {str(dataset.schema.field(key).type) for key in keys}
    return dataset.to_table().to_pylist(), types, counts.rename_columns([*keys, "n"]).to_pylist()


def by_polars(folder: Path, keys: Sequence[str]) -> Read:
    frame = pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True)
    counts = frame.group_by(keys).agg(pl.len().alias("n")).collect()
    types = {str(frame.collect_schema()[key]) for key in keys}
    return frame.collect().to_dicts(), types, counts.to_dicts()


def by_sql(rows: Callable[[str], list[Row]], source: str, keys: Sequence[str]) -> Read:
    names, kinds = ", ".join(keys), ", ".join(f"typeof({key}) AS {key}" for key in keys)
    types = {kind for row in rows(f"SELECT DISTINCT {kinds} FROM {source}") for kind in row.values()}
    counts = rows(f"SELECT {names}, count(*) AS n FROM {source} GROUP BY {names}")
    return rows(f"SELECT * FROM {source}"), types, counts


def by_duckdb(folder: Path, keys: Sequence[str]) -> Read:
    with duckdb.connect() as connection:

        def rows(query: str) -> list[Row]:
            found: pa.Table = connection.sql(query).to_arrow_table()
            return found.to_pylist()

        return by_sql(rows, f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)", keys)


@contextmanager
def spark(jar: str) -> Iterator[Callable[[Path, Sequence[str]], Read]]:
    """A reader by Spark, out of the jar of Beam's job server: the package pyspark is 400 MB more of the same."""
    opened = ("java.lang", "java.lang.invoke", "java.net", "java.nio", "java.util", "java.util.concurrent")
    opened += ("sun.nio.ch", "sun.util.calendar")
    options = ["-Xmx512m", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in opened)]
    gateway = JavaGateway.launch_gateway(
        jarpath=jar, classpath=jar, javaopts=options, die_on_exit=True, enable_auth=True
    )
    builder = gateway.jvm.org.apache.spark.sql.SparkSession.builder().master("local[1]")
    for name, value in {"ui.enabled": "false", "sql.session.timeZone": "UTC"}.items():
        builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()

    def rows(query: str) -> list[Row]:
        options = "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSX\", 'ignoreNullFields', 'false')"
        packed = session.sql(f"SELECT to_json(collect_list(struct(*)), {options}) FROM ({query})")
        found: list[Row] = json.loads(packed.first().getString(0))
        return found

    try:
        yield lambda folder, keys: by_sql(rows, f"parquet.`{folder}`", keys)
    finally:
        session.stop()
        gateway.shutdown()
        with gateway.java_process as process:  # which ends with its input
            process.stdin.close()


def assert_reads(read: Callable[[Path, Sequence[str]], Read], output: Path) -> None:
    """All tables give the same rows, partition columns that are strings, and equal counts by those."""
    for kind in SCHEMAS:
        keys = ["chunker", "source"] + [f"by_{key}" for key in KEYS if kind == "chunks"]
        expected = held(output, kind)
        rows, types, counts = read(output / kind, keys)
        assert canonical(rows) == canonical(expected)
        assert types <= {"string", "String", "VARCHAR"}
        told = {tuple(row[key] for key in keys): row["n"] for row in counts}
        assert told == Counter(tuple(row[key] for key in keys) for row in expected)


@pytest.mark.parametrize("read", [by_pyarrow, by_duckdb, by_polars])
def test_a_reader_gives_the_rows_of_the_files_and_their_partitions(
    read: Callable[[Path, Sequence[str]], Read], table: Path
) -> None:
    assert_reads(read, table)


def test_spark_gives_the_rows_of_the_files_and_their_partitions(table: Path, spark_jar: str) -> None:
    with spark(spark_jar) as read:
        assert_reads(read, table)


@pytest.mark.parametrize("read", [by_pyarrow, by_duckdb, by_polars])
@pytest.mark.parametrize(
    "team", [team for team in TEAMS if team not in ("true", "__HIVE_DEFAULT_PARTITION__")]
)
def test_no_reader_takes_a_word_for_another_type(
    read: Callable[[Path, Sequence[str]], Read], team: object, tmp_path: Path
) -> None:
    run = Run("first", 0, partition_by=("team",))
    only = replace(document(0), metadata={"team": team})
    write(tmp_path, run, [DocumentChunks(only, list(chunks(only, CHUNKER)), "ok", CHUNKER)])
    rows, types, _ = read(tmp_path / "chunks", ["chunker", "source", "by_team"])
    assert types <= {"string", "String", "VARCHAR"}
    assert canonical(rows) == canonical(held(tmp_path, "chunks"))
