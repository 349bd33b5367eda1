from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that

from transforms.errors import ConfigError
from transforms.read import ReadDocuments
from transforms.records import DeadLetter, RawDocument
from transforms.sources import ReadSettings, match


def collected(check: Callable[[list[Any], list[Any]], None]) -> Callable[[list[Any]], None]:
    def split(items: list[Any]) -> None:
        check(
            [item for item in items if isinstance(item, RawDocument)],
            [item for item in items if isinstance(item, DeadLetter)],
        )

    return split


def test_tables_and_objects_become_documents_and_what_is_broken_flows_on(tmp_path: Path) -> None:
    rows = pa.table({"document_id": [f"row{n}" for n in range(20)], "text": ["text"] * 19 + [None]})
    pq.write_table(rows, tmp_path / "table.parquet", row_group_size=3)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "table.parquet").read_bytes()[:500])
    for name in ("a.md", "b[1].html", "c.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "large.txt").write_text("x" * 200)

    def check(documents: list[RawDocument], dead: list[DeadLetter]) -> None:
        assert sorted(str(d.content) for d in documents if isinstance(d.content, bytes)) == [
            "b'a.md'",
            "b'b[1].html'",
            "b'c.txt'",
        ]
        assert sorted(d.source.row for d in documents if d.source.row is not None) == list(range(19))
        assert sorted((d.reason, d.source.uri.rpartition("/")[2]) for d in dead) == [
            ("not_parquet", "cut.parquet"),
            ("null_text", "table.parquet"),
            ("too_large", "large.txt"),
        ]

    settings = ReadSettings(task_bytes=500, max_document_bytes=100)
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions([]))
    assert_that(pipeline | ReadDocuments([f"{tmp_path}/*"], settings), collected(check))
    result = pipeline.run()
    result.wait_until_finish()

    metrics = result.metrics().query(MetricsFilter().with_namespace("chunkmill"))
    counters = {metric.key.metric.name: metric.committed for metric in metrics["counters"]}
    assert counters == {"documents_read": 22, "bytes_read": 19 * 4 + 4 + 9 + 5}
    (milliseconds,) = metrics["distributions"]
    assert milliseconds.key.metric.name == "read_ms"
    assert milliseconds.committed.count > 2


def test_an_input_without_files_is_an_empty_collection() -> None:
    def check(documents: list[RawDocument], dead: list[DeadLetter]) -> None:
        assert not documents
        assert not dead

    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions([]))
    assert_that(pipeline | ReadDocuments([]), collected(check))
    pipeline.run().wait_until_finish()


def test_settings_that_do_not_fit_stop_the_launch(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "body": ["x"]}), tmp_path / "t.parquet")
    files = match([str(tmp_path / "t.parquet")])
    with pytest.raises(ConfigError, match="'id', 'body'"):
        ReadDocuments(files)
    ReadDocuments(files, ReadSettings(columns={"text": "body"}))
    with pytest.raises(ConfigError, match="matches no file"):
        ReadDocuments([str(tmp_path / "*.md")])


def test_what_is_shipped_to_workers_holds_names_only(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    shipped = pickle.dumps(ReadDocuments([f"{tmp_path}/a.md"]).bundles)
    assert str(tmp_path).encode() in shipped
    assert b"fsspec" not in shipped
