"""The sink in small pipelines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pyarrow.dataset as ds
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from transforms.commit import Table
from transforms.errors import CommitError
from transforms.parquet_files import Layout
from transforms.provenance import ChunkerRecord, Run
from transforms.records import Chunk, DeadLetter, Document, DocumentChunks, Source
from transforms.schemas import CHUNKS
from transforms.write import WriteChunks

CHUNKER = ChunkerRecord("recursive", 1, "0123456789abcdef", '{"chunk_size":10}', "characters", "ff", 10)
RUN = Run("run", 1_000_000, shards=3)


def cut(document_id: str, *texts: str, uri: str = "") -> DocumentChunks:
    """A document of `texts`, each of which is a chunk."""
    chunks, start = [], 0
    for index, text in enumerate(texts):
        name = hashlib.sha256(repr((document_id, index, text)).encode()).hexdigest()[:32]
        span = (start, start + len(text))
        chunks.append(
            Chunk(name, document_id, index, text, len(text), (span,), span, 0, (1, 1), "body", "recursive")
        )
        start += len(text)
    document = Document(document_id, "".join(texts), source=Source("corpus", uri))
    return DocumentChunks(document, chunks, "ok", CHUNKER)


ELEMENTS = [
    *(cut(f"d{number:02d}", f"first of {number}", f"second of {number}") for number in range(20)),
    cut("d07", "another", uri="z"),
    DeadLetter("broken", "parse", "not_text", "is no text", Source("corpus", "u")),
]


def run(
    elements: Sequence[DocumentChunks | DeadLetter], sink: WriteChunks, *flags: str
) -> beam.runners.runner.PipelineResult:
    """Write `elements` in a pipeline."""
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(list(flags)))
    _ = pipeline | beam.Create(elements) | sink
    return pipeline.run()


def tree(folder: Path) -> dict[str, bytes]:
    """All files below `folder`."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pipeline_writes_one_committed_table(tmp_path: Path) -> None:
    run(ELEMENTS, WriteChunks(str(tmp_path), RUN, CHUNKER))
    table = ds.dataset(tmp_path / "chunks", partitioning="hive").to_table()
    assert sorted(table["text"].to_pylist()) == sorted(
        f"{place} of {number}" for number in range(20) for place in ("first", "second")
    )
    letters = ds.dataset(tmp_path / "dead_letters").to_table().to_pylist()
    assert {(row["document_id"], row["reason"]) for row in letters} == {
        ("broken", "not_text"),
        ("d07", "duplicate_document_id"),
    }
    assert Table(str(tmp_path)).shards == 3
    files = tree(tmp_path)
    data = {name for name in files if not name.startswith(("control/", "chunkers/"))}
    assert data == Table(str(tmp_path)).files.keys()
    assert not [name for name in files if name.startswith("control/staging/")]


def test_the_report_comes_out_of_the_pipeline(tmp_path: Path) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        reports = pipeline | beam.Create(ELEMENTS) | WriteChunks(str(tmp_path), RUN, CHUNKER)
        counts = reports | beam.Map(lambda report: (report["outcome"], report["chunks"], report["documents"]))
        expected = {"in": 22, "ok": 20, "blank": 0, "skipped": 0, "failed": 2}
        assert_that(counts, equal_to([("committed", 40, expected)]))


def test_order_bundles_and_repeats_make_no_difference(tmp_path: Path) -> None:
    run(ELEMENTS, WriteChunks(str(tmp_path / "one"), RUN, CHUNKER))
    run(ELEMENTS[::-1], WriteChunks(str(tmp_path / "two"), RUN, CHUNKER), "--direct_runner_bundle_repeat=2")
    expected = tree(tmp_path / "one")
    assert tree(tmp_path / "two") == expected
    run(ELEMENTS, WriteChunks(str(tmp_path / "one"), RUN, CHUNKER), "--direct_runner_bundle_repeat=2")
    assert tree(tmp_path / "one") == expected


def test_an_empty_input_is_committed_too(tmp_path: Path) -> None:
    run([], WriteChunks(str(tmp_path), RUN, CHUNKER))
    table = ds.dataset(tmp_path / "chunks").to_table()
    assert (len(table), table.schema.names) == (0, CHUNKS.names)
    assert Table(str(tmp_path)).seq == 1


def test_without_a_run_each_pipeline_is_a_run_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        run(ELEMENTS, WriteChunks(str(tmp_path)))
    table = Table(str(tmp_path))
    assert (table.seq, table.shards) == (2, 1)
    rows = ds.dataset(tmp_path / "chunks").to_table()
    assert (len(rows), len(set(rows["run_id"].to_pylist()))) == (40, 1)
    assert min(rows["created_at"].to_pylist()).year > 2020


def test_a_layout_reaches_the_files(tmp_path: Path) -> None:
    run(ELEMENTS, WriteChunks(str(tmp_path), RUN, CHUNKER, layout=Layout(file_bytes=1, row_group_rows=8)))
    chunks = [entry for entry in Table(str(tmp_path)).files.values() if entry.kind == "chunks"]
    assert len(chunks) > 3
    assert max(entry.rows for entry in chunks) == 8


def test_a_refused_commit_fails_the_job_and_leaves_the_table_alone(tmp_path: Path) -> None:
    run(ELEMENTS, WriteChunks(str(tmp_path), RUN, CHUNKER))
    before = tree(tmp_path)
    with pytest.raises(CommitError, match="the mode is error_if_exists"):
        run(ELEMENTS[:1], WriteChunks(str(tmp_path), Run("next", 2, mode="error_if_exists", shards=3)))
    assert tree(tmp_path) == before


def test_the_steps_tell_how_long_they_took(tmp_path: Path) -> None:
    result = run(ELEMENTS, WriteChunks(str(tmp_path), RUN, CHUNKER))
    found = result.metrics().query()["distributions"]
    names = {metric.key.metric.name for metric in found if metric.key.metric.namespace == "chunkmill"}
    assert names == {"pack_ms", "write_ms", "commit_ms"}


def test_append_refuses_an_id_that_the_table_holds_and_repeats_itself_harmlessly(tmp_path: Path) -> None:
    first = replace(RUN, mode="append", run_id="first")
    second = replace(RUN, mode="append", run_id="second")
    run(ELEMENTS, WriteChunks(str(tmp_path), first, CHUNKER))
    before = tree(tmp_path / "chunks")
    run(ELEMENTS, WriteChunks(str(tmp_path), first, CHUNKER))
    assert tree(tmp_path / "chunks") == before
    run(ELEMENTS, WriteChunks(str(tmp_path), second, CHUNKER))
    assert tree(tmp_path / "chunks") == before
    letters = ds.dataset(tmp_path / "dead_letters").to_table().to_pylist()
    refused = [row for row in letters if row["run_id"] == "second" and row["stage"] == "write"]
    assert {row["reason"] for row in refused} == {"duplicate_document_id"}
    assert refused


def test_overwriting_with_nothing_leaves_nothing_of_that_source(tmp_path: Path) -> None:
    named = replace(RUN, source_name="corpus")
    run(ELEMENTS, WriteChunks(str(tmp_path), named, CHUNKER))
    run([], WriteChunks(str(tmp_path), replace(named, run_id="empty"), CHUNKER))
    assert ds.dataset(tmp_path / "chunks").to_table().num_rows == 0
