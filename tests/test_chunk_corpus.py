"""The job from end to end: mixed documents in, a committed table out, the same on every engine."""

import gc
import json
import os
import signal
import textwrap
from collections import Counter, defaultdict
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sessions import processes_of_session, session, wait_until

beam = pytest.importorskip("apache_beam")

from pipelines import chunk_corpus  # noqa: E402
from pipelines.cli import main  # noqa: E402
from pipelines.options import run_settings  # noqa: E402
from transforms.errors import ConfigError  # noqa: E402
from transforms.schemas import SCHEMAS  # noqa: E402
from transforms.sources import SourceFile  # noqa: E402
from transforms.tokenizers import get_tokenizer  # noqa: E402

GUIDE = """---
title: Guide to the harbour
---

# Arrivals

A ship that arrives waits outside. The pilot comes aboard; nobody else does.

## 手续

船长必须在到达后一小时内报告。没有报告的船不能停靠。

```text
# not a heading
berth 1   free
```

## Departures

Leaving is easier \N{WAVING HAND SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}. Sign the book, pay, go.
"""
NOTES = "First line.\nSecond line, which is a little longer than the first one.\n\n\tAn indented end.\n"
LETTER = "Письмо.\n\nПогода хорошая, корабли приходят каждый день. Завтра ждём ещё два.\n"
TABLE = "berth,ship\n1,Aurora\n2,Fram\n"
ROWS = {f"r{n}": f"Row {n} tells of ship {n}. " * (n + 1) for n in range(10)}
MORE = {"m0": "Ships come. Ships go.", "m1": "مرحبا بكم في الميناء. كل شيء جاهز."}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))

SIZE, OVERLAP = 24, 6


def command(*arguments):
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def write_rows(path, ids, texts, row_group_size=3):
    pq.write_table(pa.table({"key": ids, "body": texts}), path, row_group_size=row_group_size)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """21 documents: 14 to cut, two blank, five that fail."""
    root = tmp_path_factory.mktemp("corpus")
    docs, rows = root / "docs", root / "rows"
    (docs / "deep").mkdir(parents=True)
    rows.mkdir()
    (docs / "guide.md").write_text(GUIDE, "utf-8")
    (docs / "notes.txt").write_bytes(NOTES.replace("\n", "\r\n").encode())
    (docs / "deep/letter.txt").write_bytes(LETTER.encode("utf-16"))
    (docs / "deep/table.csv").write_text(TABLE)
    (docs / "blank.txt").write_text(" \n\n\t\n")
    (docs / "photo.txt").write_bytes(PNG)
    texts = [*ROWS.values(), ""]
    ids = [*ROWS, "empty"]
    ids[4], texts[5] = None, None
    write_rows(rows / "many.parquet", ids, texts)
    write_rows(rows / "more.parquet", [*MORE, "r0"], [*MORE.values(), "Another document with the id of one."])
    write_rows(rows / "cut.parquet", ["c"] * 100, ["lost"] * 100)
    os.truncate(rows / "cut.parquet", (rows / "cut.parquet").stat().st_size // 2)
    return root


def texts_of(corpus):
    """Text of each document that is to be cut, by its URI or id."""
    named = {"guide.md": GUIDE, "notes.txt": NOTES, "deep/letter.txt": LETTER, "deep/table.csv": TABLE}
    rows = {key: text for key, text in ROWS.items() if key not in ("r4", "r5")}
    return {**{str(corpus / "docs" / name): text for name, text in named.items()}, **rows, **MORE}


def arguments(corpus, output, *more):
    inputs = ["--input", f"{corpus}/docs", "--input", f"{corpus}/rows/*.parquet"]
    columns = ["--id_column", "key", "--text_column", "body"]
    sizes = ["--chunk_size", SIZE, "--chunk_overlap", OVERLAP, "--max_error_rate", 0.25]
    return ["run", *inputs, *columns, *sizes, "--output", output, *more]


@pytest.fixture(scope="module")
def table(corpus, tmp_path_factory):
    """The table of one run over the corpus."""
    output = tmp_path_factory.mktemp("runs") / "table"
    report = output.with_name("report.json")
    assert command(*arguments(corpus, output, "--shards", 4, "--keep_text", "--report", report)) == 0
    return output


def rows_of(output, kind="chunks"):
    """Rows of every Parquet file below a folder of the table, as any reader would take them."""
    files = sorted((output / kind).rglob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def digests(output, *left_out):
    return {
        str(file.relative_to(output)): sha256(file.read_bytes()).hexdigest()
        for file in sorted(output.rglob("*"))
        if file.is_file() and file.relative_to(output).parts[0] not in left_out
    }


def manifests(output):
    return [json.loads(file.read_text()) for file in sorted((output / "control/commits").iterdir())]


def report_of(output):
    return json.loads((output.with_name("report.json")).read_text())


def name_of(row):
    return row["document_id"] if row["source_uri"].endswith(".parquet") else row["source_uri"]


# One run.


def test_documents_in_are_ok_blank_skipped_or_failed_to_the_last_one(table):
    assert report_of(table)["documents"] == {"in": 21, "ok": 14, "blank": 2, "skipped": 0, "failed": 5}


def test_exactly_the_documents_with_text_have_chunks(corpus, table):
    assert {name_of(row) for row in rows_of(table)} == texts_of(corpus).keys()


def test_rows_obey_the_laws_against_the_source_texts(corpus, table):
    texts, count = texts_of(corpus), get_tokenizer("cl100k_base").count
    documents = defaultdict(list)
    for row in rows_of(table):
        documents[name_of(row)].append(row)
    for name, chunks in documents.items():
        text, covered = texts[name], set()
        assert [chunk["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
        for chunk in chunks:
            start, end = chunk["start_char"], chunk["end_char"]
            assert chunk["text"] == text[start:end]
            assert chunk["text"].encode() == text.encode()[chunk["start_byte"] : chunk["end_byte"]]
            assert chunk["token_count"] == count(chunk["text"]) <= SIZE
            assert chunk["line_start"] == 1 + text.count("\n", 0, start)
            assert chunk["line_end"] == 1 + text.count("\n", 0, end - 1)
            assert chunk["chunk_count"] == len(chunks)
            assert (chunk["spans"], chunk["is_derived"], chunk["over_budget"]) == (None, False, False)
            covered.update(range(start, end))
        assert [text[at] for at in range(len(text)) if at not in covered and not text[at].isspace()] == []
        for before, after in pairwise(chunks):
            assert before["start_char"] < after["start_char"]
            assert before["end_char"] < after["end_char"]
            assert after["overlap_chars"] == max(0, before["end_char"] - after["start_char"])


def test_some_chunks_overlap_and_some_documents_have_several(table):
    rows = rows_of(table)

    assert any(row["overlap_chars"] for row in rows)
    assert max(row["chunk_index"] for row in rows) >= 3


def test_no_two_chunks_have_one_id(table):
    ids = [row["chunk_id"] for row in rows_of(table)]

    assert len(ids) == len(set(ids))


def test_chunks_know_their_document(corpus, table):
    rows = rows_of(table)
    guide = next(row for row in rows if row["source_uri"].endswith("guide.md"))
    letter = next(row for row in rows if row["source_uri"].endswith("letter.txt"))

    content = (corpus / "docs/guide.md").read_bytes()
    assert guide["content_sha256"] == sha256(content).hexdigest()
    assert guide["source_size"] == len(content)
    assert (guide["media_type"], guide["parser_name"]) == ("text/markdown", "markdown")
    assert guide["title"] == "Guide to the harbour"
    assert json.loads(letter["metadata"])["decoding"] == {"encoding": "utf-16-le", "bom_removed": True}
    assert {row["chunker_name"] for row in rows} == {"recursive"}
    assert {row["tokenizer"] for row in rows} == {"cl100k_base"}
    under = {tuple(row["headings"] or ()) for row in rows if row["source_uri"].endswith("guide.md")}
    assert ("Arrivals", "手续") in under
    assert not any("not a heading" in path for path in under)


def test_the_ledger_lists_each_document_once_with_its_state(corpus, table):
    ledger = rows_of(table, "documents")
    chunks = Counter(row["document_id"] for row in rows_of(table))

    assert Counter(row["status"] for row in ledger) == {"ok": 14, "blank": 2, "failed": 5}
    for row in ledger:
        assert row["chunk_count"] == (chunks[row["document_id"]] if row["status"] == "ok" else 0)
        if row["status"] == "ok":
            text = texts_of(corpus)[name_of(row)]
            assert row["text"] == text
            assert row["text_sha256"] == sha256(text.encode()).hexdigest()
            assert (row["char_count"], row["byte_count"]) == (len(text), len(text.encode()))
            assert (row["lost_chars"], row["coverage"]) == (0, 1.0)


def test_each_failed_document_is_a_dead_letter_that_says_where_and_why(corpus, table):
    letters = {row["reason"]: row for row in rows_of(table, "dead_letters")}
    rows = corpus / "rows"

    assert {reason: (row["stage"], row["source_uri"]) for reason, row in letters.items()} == {
        "not_text": ("parse", str(corpus / "docs/photo.txt")),
        "null_id": ("read", str(rows / "many.parquet")),
        "null_text": ("read", str(rows / "many.parquet")),
        "not_parquet": ("read", str(rows / "cut.parquet")),
        "duplicate_document_id": ("write", str(rows / "more.parquet")),
    }
    assert "PNG" in letters["not_text"]["message"]
    assert f"{rows}/many.parquet, row 4" in letters["null_id"]["message"]
    assert letters["null_id"]["source_row"] == 4
    assert (letters["null_text"]["document_id"], letters["null_text"]["source_row"]) == ("r5", 5)
    assert f"{rows}/cut.parquet" in letters["not_parquet"]["message"]
    taken = letters["duplicate_document_id"]
    assert (taken["document_id"], taken["source_row"]) == ("r0", 2)
    assert f"{rows}/many.parquet" in taken["message"]
    assert "row 0" in taken["message"]
    assert report_of(table)["dead_letters"] == sorted(
        (
            {"stage": r["stage"], "reason": r["reason"], "letters": 1, "documents": 1}
            for r in letters.values()
        ),
        key=lambda row: (row["stage"], row["reason"]),
    )


def test_of_two_documents_with_one_id_the_first_stays_whole(table):
    text = "".join(row["text"] for row in rows_of(table) if row["document_id"] == "r0")

    assert text == ROWS["r0"].strip()


def test_report_manifest_and_files_tell_the_same(table):
    report, (manifest,) = report_of(table), manifests(table)
    chunks, ledger = rows_of(table), rows_of(table, "documents")

    assert report["chunks"] == len(chunks) == sum(row["chunk_count"] for row in ledger)
    assert report["tokens"] == sum(row["token_count"] for row in chunks)
    read = [row for row in ledger if row["status"] != "failed"]
    assert report["characters"] == sum(row["char_count"] for row in read)
    assert report["bytes"] == sum(row["byte_count"] for row in read)
    assert (report["coverage"], report["lost_characters"], report["over_budget"]) == (1.0, 0, 0)
    assert sum(report["fill"].values()) == len(chunks)
    assert report["read_as_plain_text"] == {}
    for kind in SCHEMAS:
        rows = rows_of(table, kind)
        files = {file: file.stat().st_size for file in (table / kind).rglob("*.parquet")}
        size = sum(files.values())
        assert report["files"][kind] == {"files": len(files), "rows": len(rows), "bytes": size}
        totals = manifest["totals"][kind]
        assert (totals["files"], totals["rows"], totals["bytes"]) == (len(files), len(rows), size)
    assert report["run_id"] == manifest["run_id"]
    assert {row["run_id"] for row in (*chunks, *ledger)} == {manifest["run_id"]}


def test_manifest_names_each_data_file_with_its_digest(table):
    (manifest,) = manifests(table)

    assert {entry["path"]: entry["sha256"] for entry in manifest["added"]} == digests(
        table, "control", "chunkers"
    )
    assert manifest["removed"] == []
    assert (manifest["seq"], manifest["parent"], manifest["shards"]) == (1, None, 4)
    assert json.loads((table / "control/LATEST").read_text())["seq"] == 1


def test_chunkers_tells_what_made_the_rows(table):
    (row,) = rows_of(table, "chunkers")
    settings = json.loads(row["settings"])

    assert {chunk["chunker_hash"] for chunk in rows_of(table)} == {row["chunker_hash"]}
    assert (row["chunker_name"], row["tokenizer"], row["chunk_size"]) == ("recursive", "cl100k_base", SIZE)
    assert (settings["chunk_size"], settings["chunk_overlap"]) == (SIZE, OVERLAP)
    folders = {file.relative_to(table / "chunks").parts[:2] for file in (table / "chunks").rglob("*.parquet")}
    assert folders == {(f"chunker=recursive-{row['chunker_hash'][:12]}", "source=documents")}


def test_report_in_the_table_lacks_only_what_the_end_of_the_run_tells(table):
    (stored,) = [json.loads(file.read_text()) for file in (table / "control/runs").iterdir()]
    given = report_of(table)

    assert given["seconds"].keys() == {"read", "parse", "chunk", "pack", "write", "commit"}
    assert given["engines"]
    assert {**stored, "seconds": given["seconds"], "engines": given["engines"]} == given


def test_nothing_staged_is_left(table):
    assert list((table / "control/staging").rglob("*")) == []


def test_failed_documents_decide_the_exit_status(corpus, tmp_path, capsys):
    inputs = ["run", "--input", f"{corpus}/docs", "--chunk_size", 64]

    assert command(*inputs, "--output", tmp_path / "a") == 3
    told = capsys.readouterr()
    assert "1 of 6 documents failed, more than max_error_rate=0.0 allows" in told.err
    assert f"{tmp_path}/a/dead_letters" in told.err
    assert "1 parse: not_text" in told.out
    assert command(*inputs, "--output", tmp_path / "b", "--max_error_rate", 0.16) == 3
    assert command(*inputs, "--output", tmp_path / "c", "--max_error_rate", 0.17) == 0
    assert len(rows_of(tmp_path / "a")) == len(rows_of(tmp_path / "c")) > 0


# The same bytes.


def test_two_runs_give_the_same_bytes(corpus, table, tmp_path):
    assert command(*arguments(corpus, tmp_path / "out", "--shards", 4, "--keep_text")) == 0

    assert digests(tmp_path / "out", "control") == digests(table, "control")
    assert manifests(tmp_path / "out") == manifests(table)


def test_a_run_that_is_repeated_changes_nothing(corpus, tmp_path, capsys):
    run = arguments(corpus, tmp_path / "out")
    assert command(*run) == 0
    before = digests(tmp_path / "out")

    assert command(*run) == 0

    assert digests(tmp_path / "out") == before
    assert "unchanged, commit 1" in capsys.readouterr().out


def test_order_and_wording_of_inputs_do_not_matter(corpus, table, tmp_path):
    inputs = [f"{corpus}/rows/{name}.parquet" for name in ("more", "cut", "many")]
    inputs += [f"{corpus}/docs/*", f"{corpus}/docs/**/*.*", f"{corpus}/rows/../docs/guide.md"]
    flags = [flag for name in inputs for flag in ("--input", name)]
    run = arguments(corpus, tmp_path / "out", "--shards", 4, "--keep_text")

    assert command("run", *flags, *run[5:]) == 0

    assert digests(tmp_path / "out", "control") == digests(table, "control")


def test_size_of_tasks_does_not_matter(corpus, tmp_path):
    for name, size in {"large": 1 << 20, "small": 1}.items():
        run = arguments(corpus, tmp_path / name, "--run_id", "same", "--shards", 3, "--task_bytes", size)
        assert command(*run) == 0

    assert digests(tmp_path / "small", "control") == digests(tmp_path / "large", "control")


@pytest.mark.parametrize("settings", [("--shards", 4, "--keep_text"), ()], ids=["shards", "defaults"])
def test_two_worker_processes_give_the_bytes_of_one(corpus, table, tmp_path, settings):
    if settings:
        alone = table
    else:
        alone = tmp_path / "alone"
        assert command(*arguments(corpus, alone)) == 0

    assert command(*arguments(corpus, tmp_path / "out", "--workers", 2, *settings)) == 0

    assert digests(tmp_path / "out", "control") == digests(alone, "control")
    assert manifests(tmp_path / "out") == manifests(alone)


@pytest.mark.filterwarnings("ignore:unclosed file <_io.BufferedReader:ResourceWarning")  # Beam's job server
@pytest.mark.usefixtures("spark_jar")
def test_spark_gives_the_bytes_of_one_process(corpus, table, tmp_path):
    run = arguments(corpus, tmp_path / "out", "--shards", 4, "--keep_text", "--runner", "SparkRunner")

    assert command(*run, "--report", tmp_path / "report.json") == 0

    assert digests(tmp_path / "out", "control") == digests(table, "control")
    assert manifests(tmp_path / "out") == manifests(table)
    spark = json.loads((tmp_path / "report.json").read_text())
    assert {**spark, "seconds": {}} == {**report_of(table), "seconds": {}}
    gc.collect()


# What runs are called, and cut into.

MIB = 1 << 20


def small(tmp_path, **texts):
    docs = tmp_path / "in"
    docs.mkdir(exist_ok=True)
    for name, text in texts.items():
        (docs / f"{name}.md").write_text(text)
        os.utime(docs / f"{name}.md", (1_700_000_000, 1_700_000_000))
    return docs


def prepared(tmp_path, **flags):
    wanted = {"input": [str(tmp_path / "in")], "output": str(tmp_path / "out"), "tokenizer": "character"}
    return chunk_corpus.prepare(run_settings({**wanted, **flags}))


@pytest.mark.parametrize(
    ("megabytes", "flags", "expected"),
    [
        (10, {}, 1),
        (512, {}, 8),
        (512, {"workers": 8}, 8),
        (1 << 20, {}, 64),
        (512, {"task_bytes": 9 * MIB}, 8),
        (512, {"task_bytes": MIB}, 1),
    ],
)
def test_local_run_has_waves_for_many_workers_whatever_their_number(tmp_path, megabytes, flags, expected):
    small(tmp_path, a="A.")
    job = prepared(tmp_path, **flags)
    read = chunk_corpus._in_waves(job.settings, [SourceFile("/in/a.txt", megabytes * MIB)])

    assert read == job.settings.read.model_copy(update={"task_bytes": expected * MIB})


def test_run_id_stays_while_inputs_and_settings_do(tmp_path):
    small(tmp_path, a="A.")
    run_id = prepared(tmp_path).run.run_id

    assert prepared(tmp_path).run.run_id == run_id
    assert prepared(tmp_path, workers=2).run.run_id == run_id
    assert prepared(tmp_path, output=str(tmp_path / "other")).run.run_id == run_id
    assert prepared(tmp_path, runner="SparkRunner").run.run_id == run_id
    assert prepared(tmp_path, chunk_size=7).run.run_id != run_id
    assert prepared(tmp_path, keep_text=True).run.run_id != run_id
    assert prepared(tmp_path, source_name="other").run.run_id != run_id
    small(tmp_path, b="B.")
    assert prepared(tmp_path).run.run_id != run_id


def test_run_id_changes_with_a_file_of_the_same_size(tmp_path):
    docs = small(tmp_path, a="A.")
    run_id = prepared(tmp_path).run.run_id

    (docs / "a.md").write_text("B.")

    assert prepared(tmp_path).run.run_id != run_id


def test_logical_time_is_that_of_the_newest_input_unless_given(tmp_path):
    docs = small(tmp_path, a="A.", b="B.")
    os.utime(docs / "b.md", (1_800_000_000, 1_800_000_000))

    assert prepared(tmp_path).run.created_at == 1_800_000_000_000_000
    assert prepared(tmp_path, run_time="2024-02-03T04:05:06Z").run.created_at == 1_706_933_106_000_000
    assert prepared(tmp_path, run_time="2024-02-03T06:05:06+02:00").run.created_at == 1_706_933_106_000_000
    assert prepared(tmp_path, run_time="2024-02-03").run.created_at == 1_706_918_400_000_000


def test_shards_follow_the_size_of_the_input(tmp_path, monkeypatch):
    small(tmp_path, a="A" * 1000, b="B" * 1500)
    monkeypatch.setattr(chunk_corpus, "_SHARD_BYTES", 1000)

    assert prepared(tmp_path).run.shards == 3
    assert prepared(tmp_path, shards=8).run.shards == 8


def test_preparing_a_refused_run_writes_nothing(tmp_path):
    small(tmp_path, a="A.")

    with pytest.raises(ConfigError, match="run_time='soon'"):
        prepared(tmp_path, run_time="soon")

    assert not (tmp_path / "out").exists()


def test_input_without_files_is_told_of_when_it_is_allowed(tmp_path, caplog):
    small(tmp_path, a="A.")

    job = prepared(tmp_path, input=[f"{tmp_path}/in/*.md", f"{tmp_path}/none/*.md"], allow_empty=True)

    assert [Path(file.uri).name for file in job.files] == ["a.md"]
    assert caplog.messages == [f"input '{tmp_path}/none/*.md' matches no file"]


def test_a_job_can_be_built_into_a_pipeline_of_ones_own(tmp_path):
    small(tmp_path, a="A b c.", b="D.")
    job = prepared(tmp_path)

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        chunk_corpus.build(job)(pipeline)

    assert sorted(row["text"] for row in rows_of(tmp_path / "out")) == ["A b c.", "D."]


# Several runs into one table.


def small_run(tmp_path, *more):
    plain = ["--tokenizer", "character", "--output", tmp_path / "out"]
    return command("run", "--input", tmp_path / "in", *plain, *more)


def texts(tmp_path):
    return sorted(row["text"] for row in rows_of(tmp_path / "out"))


def test_overwrite_replaces_what_the_run_covers(tmp_path):
    docs = small(tmp_path, a="Old a.", b="B.")
    assert small_run(tmp_path) == 0
    small(tmp_path, a="New a.")
    (docs / "b.md").unlink()

    assert small_run(tmp_path, "--mode", "overwrite") == 0

    assert texts(tmp_path) == ["New a."]
    first, second = manifests(tmp_path / "out")
    assert second["removed"] == sorted(e["path"] for e in first["added"] if e["kind"] != "changes")


def test_overwrite_leaves_other_chunkers_and_sources_alone(tmp_path):
    wiki = small(tmp_path, w="Text w.") / "w.md"
    assert small_run(tmp_path, "--source_name", "wiki") == 0
    wiki.unlink()
    small(tmp_path, a="Text a.")
    assert small_run(tmp_path) == 0
    assert small_run(tmp_path, "--chunker", "token") == 0
    before = digests(tmp_path / "out", "control")

    small(tmp_path, a="Text b.")
    assert small_run(tmp_path, "--mode", "overwrite") == 0

    assert texts(tmp_path) == ["Text a.", "Text b.", "Text w."]
    changed = digests(tmp_path / "out", "control").items() - before.items()
    assert {path.split("/")[0] for path, _ in changed} == {"chunks", "documents", "changes", "deletes"}
    assert {path.split("/")[2] for path, _ in changed} == {"source=documents"}


def test_an_id_of_one_source_is_refused_in_another_under_the_same_chunker(tmp_path):
    small(tmp_path, a="Text a.")
    assert small_run(tmp_path) == 0
    assert small_run(tmp_path, "--source_name", "wiki") == 3
    assert texts(tmp_path) == ["Text a."]
    assert [row["reason"] for row in rows_of(tmp_path / "out", "dead_letters")] == ["duplicate_document_id"]


def test_two_chunkers_live_in_one_table_with_ids_of_their_own(tmp_path):
    small(tmp_path, a="# One\n\nSome text.\n\n# Two\n\nMore of it.")
    assert small_run(tmp_path, "--chunk_size", 30) == 0
    assert small_run(tmp_path, "--chunk_size", 30, "--chunker", "heading_aware", "--chunk_overlap", 0) == 0

    rows = rows_of(tmp_path / "out")
    by_name = Counter(row["chunker_name"] for row in rows)
    assert by_name == {"recursive": 2, "heading_aware": 4}
    assert len({row["chunk_id"] for row in rows}) == 6
    assert {row["chunker_name"] for row in rows_of(tmp_path / "out", "chunkers")} == by_name.keys()
    assert manifests(tmp_path / "out")[-1]["totals"]["chunks"]["rows"] == 6


def test_append_adds_and_keeps(tmp_path):
    docs = small(tmp_path, a="Text a.")
    assert small_run(tmp_path) == 0
    before = digests(tmp_path / "out", "control")
    (docs / "a.md").unlink()
    small(tmp_path, b="Text b.")

    assert small_run(tmp_path, "--mode", "append") == 0

    assert texts(tmp_path) == ["Text a.", "Text b."]
    assert before.items() <= digests(tmp_path / "out", "control").items()
    assert [manifest["mode"] for manifest in manifests(tmp_path / "out")] == ["overwrite", "append"]


def test_append_that_is_repeated_adds_nothing(tmp_path):
    small(tmp_path, a="Text a.")
    assert small_run(tmp_path, "--mode", "append") == 0
    assert small_run(tmp_path, "--mode", "append") == 0

    assert texts(tmp_path) == ["Text a."]
    assert len(manifests(tmp_path / "out")) == 1


def test_error_if_exists_refuses_a_table_and_leaves_it(tmp_path, capsys):
    small(tmp_path, a="Text a.")
    assert small_run(tmp_path, "--mode", "error_if_exists") == 0
    before = digests(tmp_path / "out")
    assert small_run(tmp_path, "--mode", "error_if_exists") == 0, "the run itself may be repeated"

    assert small_run(tmp_path, "--mode", "error_if_exists", "--chunk_size", 99) == 2

    assert f"output='{tmp_path}/out': holds a table already" in capsys.readouterr().err
    assert digests(tmp_path / "out") == before


def test_error_if_exists_refuses_a_folder_with_something_else_in_it(tmp_path, capsys):
    small(tmp_path, a="Text a.")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.doc").write_text("do not touch")

    assert small_run(tmp_path, "--mode", "error_if_exists") == 2

    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.doc"]


def test_shards_of_a_table_are_kept_and_others_refused(tmp_path, capsys):
    docs = small(tmp_path, **{f"d{n}": f"Text {n}." for n in range(8)})
    assert small_run(tmp_path, "--shards", 4) == 0
    before = digests(tmp_path / "out")

    assert small_run(tmp_path, "--shards", 2) == 2
    assert "shards=2: the table has 4" in capsys.readouterr().err
    assert digests(tmp_path / "out") == before

    (docs / "d0.md").unlink()
    assert small_run(tmp_path, "--mode", "overwrite") == 0
    assert texts(tmp_path) == [f"Text {n}." for n in range(1, 8)]
    assert manifests(tmp_path / "out")[-1]["shards"] == 4
    parts = {file.name[:19] for file in (tmp_path / "out/chunks").rglob("*.parquet")}
    assert parts <= {f"part-0000{n}-of-00004" for n in range(4)}


def test_a_run_with_other_settings_mixes_with_no_row_of_the_one_before(tmp_path):
    rows = [{"id": f"d{n}", "text": f"Row {n}."} for n in range(8)]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in/rows.parquet")
    ids = ["--id_column", "id"]
    assert small_run(tmp_path, *ids, "--shards", 4) == 0
    first = rows_of(tmp_path / "out")
    assert len(first) == 8
    assert small_run(tmp_path, *ids) == 0
    assert rows_of(tmp_path / "out") == first

    assert small_run(tmp_path, *ids, "--chunk_size", 4) == 0

    partitions = sorted((tmp_path / "out/chunks").iterdir())
    hashes = [{row["chunker_hash"] for row in rows_of(folder, ".")} for folder in partitions]
    assert [len(held) for held in hashes] == [1, 1]
    assert hashes[0] != hashes[1]
    (old,) = [folder for folder in partitions if rows_of(folder, ".") == first]
    (new,) = [folder for folder in partitions if folder != old]
    assert len({row["run_id"] for row in rows_of(new, ".")}) == 1
    assert max(len(row["text"]) for row in rows_of(new, ".")) <= 4


# A run that is interrupted.

SLOW = """
    import time
    from pathlib import Path
    import transforms.write

    def slowly(*arguments, write=transforms.write.write_shard):
        entries = write(*arguments)
        Path(STARTED).touch()
        time.sleep(600)
        return entries

    transforms.write.write_shard = slowly
"""
COMMAND = """
    import sys
    from pipelines import cli, worker_processes

    worker_processes._PROGRAM = SLOW + worker_processes._PROGRAM
    exec(SLOW)
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_run_leaves_the_table_as_it_was(tmp_path, workers):
    small(tmp_path, a="Old text.")
    assert small_run(tmp_path) == 0
    small(tmp_path, a="New and longer text.", b="More text.")
    output, started = tmp_path / "out", tmp_path / "started"
    before = digests(output)
    script = tmp_path / "command.py"
    slow = textwrap.dedent(SLOW).replace("STARTED", repr(str(started)))
    script.write_text(f"SLOW = {slow!r}\n{textwrap.dedent(COMMAND)}")
    run = ["run", "--input", tmp_path / "in", "--output", output, "--tokenizer", "character"]
    with session(script, *run, "--workers", workers) as process:
        wait_until(started.exists, seconds=150)
        assert list((output / "control/staging").rglob("*.parquet"))
        # Only the command: a terminal would tell its workers too, which makes it easier.
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors.decode()
        assert errors.decode().endswith("chunkmill: interrupted; nothing was committed\n")
        assert "Traceback" not in errors.decode()
        assert digests(output) == before
        assert processes_of_session(process.pid) == []

    assert small_run(tmp_path) == 0
    assert texts(tmp_path) == ["More text.", "New and longer text."]
