"""The command line as a data engineer meets it: settings that land, settings that are refused, hard inputs."""

import json
import os
import subprocess
import sys
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("apache_beam")

from pipelines.cli import main

SUBCOMMANDS = ["run", "preview", "chunkers", "verify"]


def command(*arguments):
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def run(tmp_path, *arguments):
    """A run with cheap settings, which later ones win over."""
    cheap = ["--tokenizer", "character", "--chunk_size", 100, "--output", tmp_path / "out"]
    return command("run", *cheap, *arguments)


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def docs(tmp_path):
    return write(tmp_path / "in", {"a.md": "# A\n\nText of a.\n", "b.txt": "Text of b.\n"})


def rows_of(output, kind="chunks"):
    files = sorted((output / kind).rglob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def texts_by_source(output):
    return {row["source_uri"]: row["text"] for row in rows_of(output)}


def report_of(output):
    (report,) = [json.loads(file.read_text()) for file in (output / "control/runs").iterdir()]
    return report


def tree(folder):
    """Everything below a folder, with digests."""
    return {
        path.relative_to(folder): sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        for path in folder.rglob("*")
    }


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "IN/*.rst"], "input='IN/*.rst': matches no file"),
        (["--input", "IN/*.md", "--input", "IN/none/*.md"], "input='IN/none/*.md': matches no file"),
        (["--input", "IN/missing.md"], "input='IN/missing.md': matches no file"),
        (["--input", "https://example.org/a.md"], "input='https://example.org/a.md': unknown scheme 'https'"),
        (["--input", "IN", "--output", "IN/out"], "output='IN/out': lies inside the input IN;"),
        (
            ["--input", "IN/**/*.parquet", "--allow_empty", "--output", "IN/x"],
            "output='IN/x': lies inside the",
        ),
        (["--input", "IN/**/*.json", "--allow_empty", "--output", "IN/x"], "output='IN/x': lies inside the"),
        (["--input", "IN/a.md", "--output", "IN"], "input='IN/a.md': lies inside the output IN;"),
        (["--input", "IN/*.md", "--output", "IN/a.md"], "output='IN/a.md': is a file; name a folder"),
        (["--input", "IN/*.md", "--output", "IN/a.md/out"], "output='IN/a.md/out': cannot be written: "),
        (
            ["--input", "IN/*.md", "--output", "IN/a.md/out", "--mode", "error_if_exists"],
            "output='IN/a.md/out': cannot be written: ",
        ),
        (["--input", "IN/*.md", "--report", "IN/none/r.json"], "report='IN/none/r.json': cannot be written"),
        (["--input", "IN/*.md", "--report", "IN"], "report='IN': is a folder; name a file"),
        (["--input", "IN", "--report", "IN/r.json"], "report='IN/r.json': lies inside the input IN;"),
        (["--input", "IN", "--chunk_overlap", "100"], "chunk_overlap=100: must be at least 0 and less than"),
        (["--input", "IN", "--chunk_size", "0"], "chunk_size='0': "),
        (["--input", "IN", "--chunker", "sorcery"], "chunker='sorcery': unknown strategy; known are code"),
        (
            ["--input", "IN", "--set", "colour=red"],
            "colour='red': recursive has no such setting; it has chunk",
        ),
        (["--input", "IN", "--set", "colour"], "set='colour': must be key=value"),
        (
            ["--input", "IN", "--tokenizer", "morse"],
            "tokenizer='morse': unknown; known are character, cl100k",
        ),
        (
            ["--input", "IN", "--colour", "red"],
            "unrecognized arguments: --colour red; see chunkmill run --help",
        ),
        (["--input", "IN", "--chunk_siz", "5"], "unrecognized arguments: --chunk_siz 5"),
        (["--input", "IN", "--mode", "merge"], "argument --mode: invalid choice: 'merge'"),
        (["--input", "IN", "--workers", "0"], "workers='0': "),
        (["--input", "IN", "--run_id", "../up"], "run_id='../up': "),
        (["--input", "IN", "--run_time", "soon"], "run_time='soon': is not an ISO 8601 time"),
        (
            ["--input", "IN", "--config", "IN/none.yaml"],
            "config='IN/none.yaml': cannot be read: No such file",
        ),
        (["--input", "IN", "--config", "IN/a.md"], "config='IN/a.md': must be a table of flags by name"),
        (
            ["--input", "IN/rows.parquet"],
            "text_column='text': IN/rows.parquet: there is no column 'text'; set ",
        ),
        (
            ["--input", "IN/rows.parquet", "--text_column", "prose"],
            "text_column='prose': IN/rows.parquet: there",
        ),
        (
            ["--input", "IN/rows.parquet", "--text_column", "year"],
            "text_column='year': IN/rows.parquet: column 'year' has type int64, text needs a string or binary",
        ),
        (
            ["--input", "IN/rows.parquet", "--text_column", "body", "--id_column", "nr"],
            "id_column='nr': IN/rows.parquet: there is no column 'nr'; set --id_column to one of 'key', 'body', ",
        ),
        (
            ["--input", "IN/rows.parquet", "--text_column", "body", "--metadata_columns", "nr"],
            "metadata_columns='nr': IN/rows.parquet: there is no column 'nr'",
        ),
        ([], "input=None: is needed: give --input"),
    ],
)
def test_refused_setting_is_named_and_nothing_is_written(tmp_path, docs, capsys, arguments, message):
    rows = pa.table({"key": ["k"], "body": ["Text of k."], "year": [1999]})
    pq.write_table(rows, docs / "rows.parquet")
    before = tree(tmp_path)
    arguments = [argument.replace("IN", str(docs)) for argument in arguments]

    assert run(tmp_path, *arguments) == 2

    told = capsys.readouterr()
    assert message.replace("IN", str(docs)) in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runner", "CloudRunner"], "runner='CloudRunner': "),
        (
            ["--beam_args=--direct_running_mode=multi_threading"],
            "direct_running_mode='multi_threading': it sil",
        ),
    ],
)
def test_engine_that_is_refused_is_named_and_no_file_is_written(tmp_path, docs, capsys, arguments, message):
    assert run(tmp_path, "--input", docs, *arguments) == 2

    assert f"chunkmill: {message}" in capsys.readouterr().err
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_refused_run_leaves_a_table_as_it_was(tmp_path, docs):
    assert run(tmp_path, "--input", docs) == 0
    before = tree(tmp_path)

    assert run(tmp_path, "--input", docs, "--shards", 3) == 2
    assert run(tmp_path, "--input", docs, "--mode", "error_if_exists", "--chunk_size", 7) == 2
    assert run(tmp_path, "--input", f"{docs}/*.rst") == 2

    assert tree(tmp_path) == before


def test_output_that_a_link_leads_into_the_input_is_refused(tmp_path, docs, capsys):
    (tmp_path / "link").symlink_to(docs)
    before = tree(tmp_path)

    assert run(tmp_path, "--input", docs, "--output", tmp_path / "link" / "out") == 2
    assert f"lies inside the input {docs};" in capsys.readouterr().err
    assert tree(tmp_path) == before

    assert run(tmp_path, "--input", docs) == 0
    (tmp_path / "alias").symlink_to(tmp_path / "out")
    assert run(tmp_path, "--input", tmp_path / "alias" / "chunks") == 2
    assert "lies inside the output" in capsys.readouterr().err


def test_output_below_a_folder_whose_files_are_read_is_fine_if_the_pattern_does_not_reach_it(tmp_path, docs):
    assert run(tmp_path, "--input", f"{docs}/*.md", "--output", docs / "out") == 0
    assert run(tmp_path, "--input", f"{docs}/*.md", "--output", docs / "out", "--chunk_size", 50) == 0


@pytest.mark.parametrize(("limit", "stage"), [("max_document_bytes", "read"), ("max_text_bytes", "parse")])
def test_document_over_a_limit_is_a_dead_letter_that_names_the_limit(tmp_path, docs, limit, stage):
    size = (docs / "a.md").stat().st_size

    assert run(tmp_path, "--input", docs, f"--{limit}", size - 1) == 3

    (letter,) = rows_of(tmp_path / "out", "dead_letters")
    assert (letter["stage"], letter["reason"]) == (stage, "too_large")
    assert letter["source_uri"] == str(docs / "a.md")
    assert str(size) in letter["message"]
    assert str(size - 1) in letter["message"]
    assert limit in letter["message"]
    assert [row["source_uri"] for row in rows_of(tmp_path / "out")] == [str(docs / "b.txt")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
        ("paper.md", b"%PDF-1.7\n" + bytes(range(256))),
        ("noise.txt", bytes(range(256)) * 4),
        ("scan.pdf", b"%PDF-1.7\n" + bytes(range(256))),
    ],
)
def test_file_that_is_not_text_is_a_dead_letter_and_the_others_are_cut(tmp_path, docs, name, content):
    write(docs, {name: content})

    assert run(tmp_path, "--input", docs) == 3

    (letter,) = rows_of(tmp_path / "out", "dead_letters")
    assert (letter["stage"], letter["source_uri"]) == ("parse", str(docs / name))
    assert letter["reason"] == ("no_parser" if name.endswith(".pdf") else "not_text")
    assert report_of(tmp_path / "out")["documents"] == {
        "in": 3,
        "ok": 2,
        "blank": 0,
        "skipped": 0,
        "failed": 1,
    }


def test_link_to_nothing_is_a_dead_letter(tmp_path, docs):
    (docs / "link.md").symlink_to(docs / "nothing.md")

    assert run(tmp_path, "--input", docs) == 3

    (letter,) = rows_of(tmp_path / "out", "dead_letters")
    assert (letter["reason"], letter["document_id"]) == ("unreadable", str(docs / "link.md"))


def test_run_in_which_every_document_fails_still_makes_a_table(tmp_path, docs):
    assert run(tmp_path, "--input", docs, "--max_document_bytes", 1) == 3

    (file,) = (tmp_path / "out/chunks").rglob("*.parquet")
    assert pq.ParquetFile(file).metadata.num_rows == 0
    assert report_of(tmp_path / "out")["documents"]["failed"] == 2


# What settings do.


def test_config_file_gives_a_job_and_flags_win(tmp_path, docs):
    config = tmp_path / "job.yaml"
    config.write_text(f"input: {docs}/*.md\noutput: {tmp_path}/out\nchunk_size: 4\ntokenizer: character\n")

    assert command("run", "--config", config) == 0
    assert max(len(row["text"]) for row in rows_of(tmp_path / "out")) <= 4
    assert command("run", "--config", config, "--chunk_size", 100, "--output", tmp_path / "other") == 0
    assert [row["text"] for row in rows_of(tmp_path / "other")] == ["# A\n\nText of a."]


def test_separators_reach_the_chunker_by_set(tmp_path):
    docs = write(tmp_path / "in", {"a.txt": "one|two|three, four"})

    assert run(tmp_path, "--input", docs, "--chunk_size", 11, "--set", 'separators=["|"]') == 0

    assert [row["text"] for row in rows_of(tmp_path / "out")] == ["one|two|", "three, four"]
    (chunker,) = rows_of(tmp_path / "out", "chunkers")
    assert json.loads(chunker["settings"])["separators"] == [["|"]]


def test_run_and_job_land_in_every_row(tmp_path, docs):
    named = ["--run_id", "nightly-7", "--run_time", "2024-02-03T04:05:06Z", "--job_id", "airflow:42"]

    assert run(tmp_path, "--input", docs, *named) == 0

    rows, ledger = rows_of(tmp_path / "out"), rows_of(tmp_path / "out", "documents")
    assert {row["run_id"] for row in (*rows, *ledger)} == {"nightly-7"}
    assert {row["created_at"].isoformat() for row in (*rows, *ledger)} == {"2024-02-03T04:05:06+00:00"}
    assert {row["job_id"] for row in rows} == {"airflow:42"}
    assert [file.name for file in (tmp_path / "out/control/runs").iterdir()] == ["nightly-7.json"]


def test_report_goes_to_the_file_and_its_summary_to_the_terminal(tmp_path, docs, capsys):
    assert run(tmp_path, "--input", docs, "--report", tmp_path / "report.json") == 0

    told = capsys.readouterr()
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["documents"]["in"] == 2
    assert "2 ok" in told.out
    assert f"run {report['run_id']}: 2 files" in told.err


def test_columns_of_a_table_are_mapped_and_carried(tmp_path):
    (tmp_path / "in").mkdir()
    table = pa.table(
        {"key": [7, 8], "body": ["Seven.", "Eight."], "by": ["Ann", None], "title": ["T7", "T8"]}
    )
    pq.write_table(table, tmp_path / "in/rows.parquet")
    columns = ["--id_column", "key", "--text_column", "body", "--title_column=", "--metadata_columns", "by"]

    assert run(tmp_path, "--input", tmp_path / "in", *columns, "--source_name", "Wiki Pages") == 0

    rows = {row["document_id"]: row for row in rows_of(tmp_path / "out")}
    assert {key: row["text"] for key, row in rows.items()} == {"7": "Seven.", "8": "Eight."}
    assert {key: json.loads(row["metadata"]) for key, row in rows.items()} == {
        "7": {"by": "Ann"},
        "8": {"by": None},
    }
    assert {row["title"] for row in rows.values()} == {None}
    assert {row["source_name"] for row in rows.values()} == {"Wiki Pages"}
    (folder,) = (tmp_path / "out/chunks").glob("*/*")
    assert folder.name.startswith("source=wiki-pages-")


def test_plain_encodings_hold_the_same_rows(tmp_path, docs):
    assert run(tmp_path, "--input", docs, "--run_id", "r") == 0
    assert run(tmp_path, "--input", docs, "--run_id", "r", "--compat", "--output", tmp_path / "plain") == 0

    assert rows_of(tmp_path / "plain") == rows_of(tmp_path / "out")
    (file,) = (tmp_path / "plain/chunks").rglob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    used = {encoding for at in range(group.num_columns) for encoding in group.column(at).encodings}
    assert not any("DELTA" in encoding for encoding in used)


# Cases from bug reports of other systems.


def test_file_names_are_names_and_not_patterns_or_addresses(tmp_path):
    names = [
        "a[1].md",
        "a1.md",
        "q?.md",
        "qx.md",
        "b#c.md",
        "100%25.md",
        "sp ace.md",
        "日本.md",
        "star*.md",
        "plus+.md",
    ]
    docs = write(tmp_path / "in", {name: f"I am {number}.\n" for number, name in enumerate(names)})
    wanted = {str(docs / name): f"I am {number}." for number, name in enumerate(names)}

    exact = [flag for name in names for flag in ("--input", docs / name)]
    assert run(tmp_path, *exact, "--output", tmp_path / "exact") == 0
    assert run(tmp_path, "--input", f"{docs}/*.md", "--output", tmp_path / "pattern") == 0

    assert texts_by_source(tmp_path / "exact") == wanted
    assert texts_by_source(tmp_path / "pattern") == wanted


@pytest.mark.parametrize(
    ("name", "number"), [("a[1].md", 0), ("a1.md", 1), ("q?.md", 2), ("star*.md", 3), ("100%25.md", 4)]
)
def test_one_exact_name_reads_one_file(tmp_path, name, number):
    names = ["a[1].md", "a1.md", "q?.md", "star*.md", "100%25.md", "qx.md", "starfish.md", "100%.md"]
    docs = write(tmp_path / "in", {name: f"I am {number}.\n" for number, name in enumerate(names)})

    assert run(tmp_path, "--input", docs / name) == 0

    assert texts_by_source(tmp_path / "out") == {str(docs / name): f"I am {number}."}


def test_overlapping_patterns_read_a_file_once_and_two_stars_reach_every_folder(tmp_path):
    docs = write(tmp_path / "docs", {"a.md": "A.", "b.md": "B.", "sub/c.md": "C."})

    assert run(tmp_path, "--input", f"{docs}/*.md", "--input", f"{docs}/a*", "--output", tmp_path / "1") == 0
    assert run(tmp_path, "--input", f"{docs}/**/*.md", "--output", tmp_path / "2") == 0

    assert sorted(texts_by_source(tmp_path / "1").values()) == ["A.", "B."]
    assert len(rows_of(tmp_path / "1")) == 2
    assert sorted(texts_by_source(tmp_path / "2").values()) == ["A.", "B.", "C."]


def test_no_documents_at_all_is_an_error_unless_it_is_allowed(tmp_path, capsys):
    nothing = f"{tmp_path}/nothing/*.md"
    assert run(tmp_path, "--input", nothing) == 2
    assert "--allow_empty" in capsys.readouterr().err

    arguments = ["run", "--input", nothing, "--allow_empty", "--tokenizer", "character", "--output", "out"]
    result = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert f"input '{nothing}' matches no file" in result.stderr
    (file,) = (tmp_path / "out/chunks").rglob("*.parquet")
    table = pq.ParquetFile(file).read()
    assert table.num_rows == 0
    assert {"chunk_id", "text", "run_id"} <= set(table.column_names)
    assert report_of(tmp_path / "out")["documents"]["in"] == 0


def test_files_in_several_encodings_give_one_text_or_say_what_was_done(tmp_path):
    text = "# Fähre\n\nAbfahrt 9:00\n"
    docs = write(
        tmp_path / "in",
        {
            "plain.md": text,
            "little.md": b"\xff\xfe" + text.encode("utf-16-le"),
            "big.md": b"\xfe\xff" + text.encode("utf-16-be"),
            "west.txt": "café — open daily".encode("cp1252"),
            "cut.txt": "end of file 日".encode()[:-1],
        },
    )

    assert run(tmp_path, "--input", docs, "--chunker", "heading", "--set", "split_level=6") == 0

    rows = {row["source_uri"].rpartition("/")[2]: row for row in rows_of(tmp_path / "out")}
    assert rows.keys() == {"plain.md", "little.md", "big.md", "west.txt", "cut.txt"}
    for name in ("plain.md", "little.md", "big.md"):
        assert rows[name]["text"] == text.rstrip()
        assert rows[name]["headings"] == ["Fähre"]
    assert not any("\0" in row["text"] for row in rows.values())
    for name in ("west.txt", "cut.txt"):
        assert json.loads(rows[name]["metadata"])["decoding"]["replacements"] > 0


def test_policy_for_undecodable_bytes_is_the_users(tmp_path):
    docs = write(tmp_path / "in", {"west.txt": "café — open".encode("cp1252")})

    assert run(tmp_path, "--input", docs, "--on_undecodable", "fail") == 3
    assert [row["reason"] for row in rows_of(tmp_path / "out", "dead_letters")] == ["undecodable"]
    assert run(tmp_path, "--input", docs, "--on_undecodable", "windows-1252") == 0
    assert [row["text"] for row in rows_of(tmp_path / "out")] == ["café — open"]


def test_equal_texts_have_ids_of_their_own_that_stay(tmp_path):
    same = "Same line.\n\nSame line.\n\nSame line.\n"
    docs = write(tmp_path / "in", {"one.md": same, "two.md": same})
    lines = ["--chunk_size", 12, "--set", 'separators=["\\n\\n"]']
    words = ["--chunk_size", 20, "--chunk_overlap", 5, "--set", 'separators=["\\n\\n", " "]']
    inputs = ["--input", docs / "two.md", "--input", docs / "one.md"]

    assert run(tmp_path, "--input", docs, *lines, "--output", tmp_path / "1") == 0
    assert run(tmp_path, *inputs, *lines, "--shards", 2, "--output", tmp_path / "2") == 0
    assert run(tmp_path, "--input", docs, *words, "--output", tmp_path / "3") == 0

    first, second, third = (rows_of(tmp_path / name) for name in "123")
    assert [row["text"] for row in first] == ["Same line."] * 6
    assert len({row["chunk_id"] for row in first}) == 6
    place = {(row["source_uri"], row["chunk_index"]): row["chunk_id"] for row in first}
    assert {(row["source_uri"], row["chunk_index"]): row["chunk_id"] for row in second} == place
    assert {row["chunker_hash"] for row in first}.isdisjoint(row["chunker_hash"] for row in third)
    assert {row["chunk_id"] for row in first}.isdisjoint(row["chunk_id"] for row in third)


def test_odd_parquet_files_and_markers_do_not_stop_the_others(tmp_path):
    docs = tmp_path / "in"
    docs.mkdir()
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(docs / "none.parquet", schema):
        pass
    with pq.ParquetWriter(docs / "mid.parquet", schema) as file:
        file.write_table(pa.table({"id": ["a"], "text": ["first text"]}, schema=schema))
        file.write_table(schema.empty_table())
        file.write_table(pa.table({"id": ["b"], "text": ["second text"]}, schema=schema))
    pq.write_table(pa.table({"id": ["c"] * 1000, "text": ["lost tail"] * 1000}), docs / "cut.parquet")
    os.truncate(docs / "cut.parquet", (docs / "cut.parquet").stat().st_size // 2)
    write(docs, {"zero-bytes.parquet": b"", "_SUCCESS": b"", ".mid.parquet.crc": b"crc"})
    groups = pq.ParquetFile(docs / "mid.parquet").metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [1, 0, 1]

    assert run(tmp_path, "--input", f"{docs}/*", "--id_column", "id", "--text_column", "text") == 3

    assert {row["document_id"]: row["text"] for row in rows_of(tmp_path / "out")} == {
        "a": "first text",
        "b": "second text",
    }
    letters = rows_of(tmp_path / "out", "dead_letters")
    assert sorted(row["source_uri"] for row in letters) == [
        f"{docs}/cut.parquet",
        f"{docs}/zero-bytes.parquet",
    ]
    assert report_of(tmp_path / "out")["documents"] == {
        "in": 4,
        "ok": 2,
        "blank": 0,
        "skipped": 0,
        "failed": 2,
    }


def test_row_group_far_larger_than_a_task_is_read_and_its_oversized_document_is_not(tmp_path):
    docs = tmp_path / "in"
    docs.mkdir()
    texts = [f"Sentence number {n}. " * 50 for n in range(300)]
    texts[100] = "x" * 400_000
    pq.write_table(pa.table({"id": [f"d{n}" for n in range(300)], "text": texts}), docs / "rows.parquet")
    limits = ["--task_bytes", 10_000, "--max_document_bytes", 100_000, "--max_error_rate", 0.01]

    assert run(tmp_path, "--input", docs, "--id_column", "id", "--chunk_size", 2000, *limits) == 0

    assert {row["document_id"] for row in rows_of(tmp_path / "out")} == {f"d{n}" for n in range(300)} - {
        "d100"
    }
    (letter,) = rows_of(tmp_path / "out", "dead_letters")
    assert (letter["document_id"], letter["reason"], letter["source_row"]) == ("d100", "too_large", 100)


def test_one_line_of_a_megabyte_is_cut_without_loss(tmp_path):
    line = "abcdefghi " * 100_000
    docs = write(tmp_path / "in", {"line.txt": line, "small.txt": "Small."})

    assert run(tmp_path, "--input", docs, "--chunk_size", 1000) == 0

    rows = [row for row in rows_of(tmp_path / "out") if row["source_uri"].endswith("line.txt")]
    assert "".join(row["text"] for row in rows).replace(" ", "") == line.replace(" ", "")
    assert max(len(row["text"]) for row in rows) <= 1000


# Verify.


def test_verify_proves_a_table_with_its_documents(tmp_path, docs, capsys):
    pq.write_table(pa.table({"key": ["k"], "body": ["Text of k."]}), docs / "rows.parquet")
    columns = ["--id_column", "key", "--text_column", "body"]
    assert run(tmp_path, "--input", docs, *columns) == 0
    capsys.readouterr()

    assert command("verify", tmp_path / "out", "--input", docs, *columns, "--format", "json") == 0

    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["documents_recut"], report["checked"]["chunks"]) == (True, 3, 3)


def test_verify_reads_documents_as_the_table_says_unless_flags_do(tmp_path, docs, capsys):
    pq.write_table(
        pa.table({"key": ["k"], "body": ["Text of k.@@1\t10.0\t200.0\t30.0\t42.0##"]}), docs / "rows.parquet"
    )
    (docs / "note.txt").write_bytes("Ébauche".encode("utf-16-le"))
    how = ["--id_column", "key", "--text_column", "body", "--position_tags", "--charset", "utf-16-le"]
    assert run(tmp_path, "--input", docs, *how, "--source_name", "scans") == 0
    capsys.readouterr()

    assert command("verify", tmp_path / "out", "--input", docs) == 0
    assert "4 compared with their text, 4 cut again" in capsys.readouterr().out
    assert command("verify", tmp_path / "out", "--input", docs, "--no-position_tags") == 1
    assert "text_sha256" in capsys.readouterr().out


def test_verify_asks_which_of_several_sources_the_inputs_are(tmp_path, docs, capsys):
    news = tmp_path / "news"
    news.mkdir()
    (news / "today.txt").write_text("News of today.")
    assert run(tmp_path, "--input", docs) == 0
    assert run(tmp_path, "--input", news, "--source_name", "news") == 0
    capsys.readouterr()

    assert command("verify", tmp_path / "out") == 0
    assert command("verify", tmp_path / "out", "--input", docs) == 2
    assert (
        "source_name=None: is needed with --input, since the table holds documents, news"
        in capsys.readouterr().err
    )
    assert command("verify", tmp_path / "out", "--input", docs, "--source_name", "documents") == 0
    assert command("verify", tmp_path / "out", "--input", news, "--source_name", "news") == 0


def test_an_image_that_the_skip_list_names_is_skipped_and_another_is_a_dead_letter(tmp_path, docs, capsys):
    for name in ("logo.png", "font.ttf"):
        (docs / name).write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    assert run(tmp_path, "--input", docs, "--chunker", "file_type") == 3

    out = tmp_path / "out"
    (letter,) = rows_of(out, "dead_letters")
    assert letter["source_uri"].endswith("font.ttf")
    ledger = {row["source_uri"].rpartition("/")[2]: row for row in rows_of(out, "documents")}
    assert (ledger["logo.png"]["status"], ledger["logo.png"]["reason"]) == ("skipped", "skip rule *.png")
    capsys.readouterr()
    assert command("verify", out, "--input", docs) == 0


def test_verify_finds_a_changed_file(tmp_path, docs, capsys):
    assert run(tmp_path, "--input", docs) == 0
    (file,) = (tmp_path / "out/chunks").rglob("*.parquet")
    pq.write_table(pq.ParquetFile(file).read().slice(1), file)

    assert command("verify", tmp_path / "out", "--input", docs) == 1

    told = capsys.readouterr().out
    assert "faults     none" not in told
    assert str(file.relative_to(tmp_path / "out")) in told


def test_verify_of_what_is_no_table_fails(tmp_path, docs, capsys):
    assert command("verify", docs) == 1
    assert "no table" in capsys.readouterr().out
    assert command("verify", tmp_path / "out", "--input", f"{docs}/*.rst") == 2


# Help.


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_each_subcommand_explains_itself_and_the_exit_status(name, capsys):
    assert command(name, "--help") == 0

    told = capsys.readouterr().out
    assert told.startswith(f"usage: chunkmill {name}")
    assert "exit status:" in told


def test_overview_lists_the_subcommands(capsys):
    assert command() == command("--help") == 0
    told = capsys.readouterr().out
    assert [name for name in SUBCOMMANDS if f"    {name} " not in told] == []
    assert command("--version") == 0
    assert capsys.readouterr().out.startswith("chunkmill ")


def test_unknown_subcommand_is_refused(capsys):
    assert command("chunk") == 2
    assert "invalid choice: 'chunk'" in capsys.readouterr().err


def test_traceback_stands_only_for_bugs(tmp_path, docs, capsys, monkeypatch):
    from pipelines import chunk_corpus
    from transforms.errors import CommitError

    def fail(job):
        raise CommitError("run b made commit 2 while run a was at work")

    monkeypatch.setattr(chunk_corpus, "run", fail)

    assert run(tmp_path, "--input", docs) == 1
    assert capsys.readouterr().err.endswith("chunkmill: run b made commit 2 while run a was at work\n")
