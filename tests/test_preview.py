"""`chunkmill preview` and `chunkmill chunkers`: what one sees before a run, without Beam."""

import io
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import preview
from pipelines.cli import main
from transforms.chunkers import CHUNKERS, get_chunker
from transforms.parsers import ParseSettings
from transforms.records import DeadLetter
from transforms.schemas import CHUNKS
from transforms.sources import ReadSettings

GUIDE = """# Arrivals

A ship that arrives waits outside.

## Papers

The pilot comes aboard; nobody else does. Then the papers are looked at, one after the other.
"""
ONLY_A_RUN_TELLS = {"run_id", "job_id", "created_at"}


def command(*arguments):
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


@pytest.fixture
def guide(tmp_path):
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    return path


@pytest.fixture
def give_stdin(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))

    return give


def rows_told(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# Text.


def test_text_tells_counts_by_kind_and_the_chunks_with_parents_spans_and_tokens(guide, capsys):
    assert (
        command("preview", guide, "--chunker", "heading_aware", "--chunk_size", 16, "--chunk_overlap", 0) == 0
    )

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [str(guide), "(text/markdown,", str(len(GUIDE)), "characters)"]
    assert lines[1].strip() == "blocks: 4 (2 heading, 2 paragraph)"
    assert lines[2].startswith("  chunks: 5 (3 body, 2 heading); ")
    assert lines[2].endswith(" tokens of cl100k_base; 0 over budget")
    chunks = [line.split() for line in lines[3:]]
    assert [chunk[:2] for chunk in chunks] == [["0", "-"], ["1", "^0"], ["2", "^0"], ["3", "^2"], ["4", "^2"]]
    assert chunks[0][2:] == ["heading", "1", "[0,", "10)", "lines", "1-1", "3", "tokens", "#", "Arrivals"]
    assert chunks[1][2:5] == ["body", "[12,", "46)"]


def test_text_shows_ten_chunks_and_how_many_more_there_are(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n\n".join(f"word{n}" for n in range(25)))
    preview_of = ["preview", tmp_path / "a.txt", "--tokenizer", "character", "--chunk_size", 6]

    assert command(*preview_of) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + 10 + 1
    assert lines[-1] == "  ... 15 more"

    assert command(*preview_of, "-n", 3) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  ... 22 more"
    assert command(*preview_of, "-n", 99) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3 + 25


def test_long_texts_are_shortened_to_one_line_each(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("several words\nand lines, " * 20)

    assert command("preview", tmp_path / "a.txt") == 0

    (line,) = capsys.readouterr().out.splitlines()[3:]
    assert line.endswith("…")
    assert "several words and lines, several" in line


def test_chunk_over_budget_is_marked(tmp_path, capsys):
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    (tmp_path / "a.txt").write_text(f"a {family} b")

    assert command("preview", tmp_path / "a.txt", "--tokenizer", "character", "--chunk_size", 2) == 0

    told = capsys.readouterr().out
    assert "1 over budget" in told
    assert told.count("OVER BUDGET") == 1


def test_blank_document_has_no_chunks(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(" \n\n")

    assert command("preview", tmp_path / "a.txt") == 0
    assert "chunks: 0; 0 tokens" in capsys.readouterr().out
    assert command("preview", tmp_path / "a.txt", "--format", "json") == 0
    assert capsys.readouterr().out == ""


# JSON.


def test_json_is_one_chunk_a_line_with_every_field_but_those_of_a_run(guide, capsys):
    assert (
        command("preview", guide, "--chunker", "heading_aware", "--chunk_size", 128, "--format", "json") == 0
    )

    rows = rows_told(capsys)
    assert {tuple(row) for row in rows} == {
        tuple(name for name in CHUNKS.names if name not in ONLY_A_RUN_TELLS)
    }
    assert [row["text"] for row in rows] == [paragraph.strip() for paragraph in GUIDE.split("\n\n")]
    assert rows[1]["parent_id"] == rows[0]["chunk_id"]
    assert rows[3]["headings"] == ["Arrivals", "Papers"]


def test_json_has_the_rows_that_a_run_writes(guide, tmp_path, capsys):
    pytest.importorskip("apache_beam")
    settings = ["--chunker", "heading", "--chunk_size", 16, "--source_name", "harbour"]
    assert command("run", "--input", guide, "--output", tmp_path / "out", *settings) == 0
    capsys.readouterr()

    assert command("preview", guide, *settings, "--format", "json") == 0

    (file,) = (tmp_path / "out/chunks").rglob("*.parquet")
    written = pq.ParquetFile(file).read().drop_columns(sorted(ONLY_A_RUN_TELLS)).to_pylist()
    assert rows_told(capsys) == json.loads(json.dumps(written, default=lambda time: time.isoformat()))


def test_json_shows_all_chunks_unless_told(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("\n\n".join(f"word{n}" for n in range(25)))
    preview_of = [
        "preview",
        tmp_path / "a.txt",
        "--tokenizer",
        "character",
        "--chunk_size",
        6,
        "--format",
        "json",
    ]

    assert command(*preview_of) == 0
    assert len(rows_told(capsys)) == 25
    assert command(*preview_of, "-n", 2) == 0
    assert [row["chunk_index"] for row in rows_told(capsys)] == [0, 1]
    assert command(*preview_of, "-n", 0) == 0
    assert rows_told(capsys) == []


def test_json_keeps_letters_of_every_script(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("手续 مرحبا привет", "utf-8")

    assert command("preview", tmp_path / "a.txt", "--format", "json") == 0

    assert '"text": "手续 مرحبا привет"' in capsys.readouterr().out


# Inputs.


def test_several_documents_are_shown_in_the_order_given(guide, tmp_path, capsys):
    (tmp_path / "b.txt").write_text("Text of b.")
    pq.write_table(pa.table({"key": ["k1", "k2"], "body": ["One.", "Two."]}), tmp_path / "rows.parquet")
    inputs = [tmp_path / "b.txt", guide, tmp_path / "rows.parquet"]

    assert command("preview", *inputs, "--format", "json", "--id_column", "key", "--text_column", "body") == 0

    rows = rows_told(capsys)
    assert [row["text"] for row in rows if "arrives" not in row["text"]] == ["Text of b.", "One.", "Two."]
    assert [row["document_id"] for row in rows[-2:]] == ["k1", "k2"]


def test_folders_and_patterns_are_inputs_too(guide, tmp_path, capsys):
    assert command("preview", tmp_path) == command("preview", f"{tmp_path}/*.md") == 0
    assert capsys.readouterr().out.count(str(guide)) == 2


def test_standard_input_is_a_document(give_stdin, capsys):
    give_stdin(GUIDE.encode())

    assert command("preview", "-", "--media_type", "text/markdown", "--chunker", "heading_aware") == 0

    told = capsys.readouterr().out
    assert told.startswith("stdin  (text/markdown, ")
    assert "4 (2 heading, 2 body)" in told


def test_standard_input_may_stand_among_files(give_stdin, guide, capsys):
    give_stdin(b"From standard input.")

    assert command("preview", guide, "-", "--format", "json") == 0

    assert [row["text"][:10] for row in rows_told(capsys)] == ["# Arrivals", "From stand"]


def test_standard_input_is_decoded_as_told(give_stdin, capsys):
    give_stdin("Fähre".encode("cp1252"))

    assert command("preview", "-", "--charset", "cp1252", "--format", "json") == 0

    assert [row["text"] for row in rows_told(capsys)] == ["Fähre"]


def test_document_that_fails_is_told_of_and_the_others_are_shown(guide, tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))

    assert command("preview", tmp_path / "a.txt", guide) == 3

    told = capsys.readouterr()
    assert told.err == f"chunkmill: not_text: {tmp_path}/a.txt: the bytes are a PNG image, not text\n"
    assert str(guide) in told.out


def test_failed_row_is_named_once(tmp_path, capsys):
    texts = [b"fine", None, b"\x89PNG\r\n\x1a\n"]
    pq.write_table(pa.table({"content": texts}), tmp_path / "rows.parquet")

    assert command("preview", tmp_path / "rows.parquet") == 3

    first, second = capsys.readouterr().err.splitlines()
    assert first == f"chunkmill: null_text: {tmp_path}/rows.parquet, row 1: text, content and blocks are null"
    assert second.startswith(
        f"chunkmill: not_text: {tmp_path}/rows.parquet, row 2: the bytes are a PNG image"
    )


def test_failed_document_keeps_its_source(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"%PDF-1.7\n" + bytes(range(256)))

    (letter,) = preview.documents([str(tmp_path / "a.txt")], ReadSettings(), ParseSettings())

    assert isinstance(letter, DeadLetter)
    assert (letter.stage, letter.reason, letter.source.uri) == ("parse", "not_text", str(tmp_path / "a.txt"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.md"], "input='none.md': matches no file"),
        (
            ["GUIDE", "--chunk_size", "8", "--chunk_overlap", "8"],
            "chunk_overlap=8: must be at least 0 and less",
        ),
        (["GUIDE", "--chunker", "sorcery"], "chunker='sorcery': unknown strategy"),
        (["GUIDE", "--set", "colour=red"], "colour='red': recursive has no such setting"),
        (["GUIDE", "--charset", "klingon"], "charset='klingon': "),
        (["GUIDE", "-n", "-1"], "argument -n: '-1' is no count"),
        (["GUIDE", "--format", "xml"], "argument --format: invalid choice: 'xml'"),
        ([], "the following arguments are required: file"),
    ],
)
def test_refused_setting_is_named(guide, capsys, arguments, message):
    assert command("preview", *(argument.replace("GUIDE", str(guide)) for argument in arguments)) == 2

    told = capsys.readouterr()
    assert message in told.err
    assert told.out == ""


def test_what_is_skipped_is_told_even_if_it_is_no_text(tmp_path, capsys):
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "LICENSE").write_text("Do what you like.")
    assert command("preview", tmp_path / "logo.png", tmp_path / "LICENSE", "--chunker", "file_type") == 0
    told = capsys.readouterr().out
    assert "  skipped: skip rule *.png\n" in told
    assert "  skipped: skip rule license\n" in told
    assert command("preview", tmp_path / "logo.png") == 3


# Rules.

JOB = """
input: elsewhere/**
output: out
chunk_size: 16
context: none
rules:
- {source: guide.*, chunker: heading, chunk_size: 30}
- {media_type: text/csv, metadata: {team: legal}, chunker: token}
- {media_type: text/csv, chunker: table_rows}
"""


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_rules_of_a_configuration_file_choose_the_chunker_which_is_told(guide, job, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "note.txt").write_text("A note.")
    assert command("preview", guide, tmp_path / "rows.csv", tmp_path / "note.txt", "--config", job) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines if line.startswith("  chunker: ")] == [
        "chunker: heading, by rule 1 (source guide.*)",
        "chunker: table_rows, by rule 3 (media_type text/csv)",
        "chunker: recursive, by no rule",
    ]
    assert any("Row 0, a: 1 Row 0, b: 2" in line for line in lines)


def test_the_rest_of_a_configuration_file_holds_too_and_flags_win(tmp_path, job, capsys):
    (tmp_path / "note.txt").write_text("word " * 30)
    assert command("preview", tmp_path / "note.txt", "--config", job, "--format", "json") == 0
    assert [row["token_count"] for row in rows_told(capsys)] == [16, 14]
    assert (
        command("preview", tmp_path / "note.txt", "--config", job, "--chunk_size", 40, "--format", "json")
        == 0
    )
    assert len(rows_told(capsys)) == 1


def test_an_unknown_setting_of_a_configuration_file_is_named(guide, job, capsys):
    job.write_text("chunk_sise: 16")
    assert command("preview", guide, "--config", job) == 2
    assert "chunk_sise=16: there is no such setting" in capsys.readouterr().err


# Strategies.


def test_chunkers_lists_each_strategy_with_its_settings(capsys):
    assert command("chunkers") == 0

    told = capsys.readouterr().out
    for name, kind in CHUNKERS.items():
        assert f"{name}  (version {kind.VERSION}, fingerprint of the defaults {kind().fingerprint()})" in told
        assert [setting for setting in kind.model_fields if f"\n  {setting} " not in told] == []


def test_chunkers_in_json_can_be_made_again_from_what_is_listed(capsys):
    assert command("chunkers", "--format", "json") == 0

    listed = rows_told(capsys)
    assert [about["name"] for about in listed] == sorted(CHUNKERS)
    for about in listed:
        assert get_chunker(about["name"], **about["settings"]).fingerprint() == about["fingerprint"]
        assert about["version"] == CHUNKERS[about["name"]].VERSION


def test_one_strategy_can_be_asked_for(capsys):
    assert command("chunkers", "token", "--format", "json") == 0
    assert [about["name"] for about in rows_told(capsys)] == ["token"]
    assert command("chunkers", "sorcery") == 2


# What is loaded.

WITHOUT_BEAM = """
import sys
from pipelines.cli import main

for arguments in {arguments}:
    try:
        assert main(arguments) == 0
    except SystemExit as stop:
        assert not stop.code
loaded = [name for name in {unwanted} if name in sys.modules]
sys.exit(f"loaded: {{loaded}}" if loaded else 0)
"""


@pytest.mark.parametrize(
    ("commands", "unwanted"),
    [
        ([["--help"], ["--version"]], ["apache_beam", "pyarrow", "tiktoken", "pydantic"]),
        ([["preview", "GUIDE"], ["chunkers"], ["run", "--help"]], ["apache_beam"]),
        ([["preview", "GUIDE", "--format", "json"], ["verify", "--help"]], ["apache_beam"]),
    ],
    ids=["overview", "text", "json"],
)
def test_beam_is_not_loaded(guide, commands, unwanted):
    arguments = [[word.replace("GUIDE", str(guide)) for word in words] for words in commands]
    script = WITHOUT_BEAM.format(arguments=arguments, unwanted=unwanted)

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr


def test_reader_that_has_seen_enough_ends_the_preview_quietly(tmp_path):
    (tmp_path / "a.txt").write_text("word " * 100_000)
    preview_of = [
        "preview",
        tmp_path / "a.txt",
        "--tokenizer",
        "character",
        "--chunk_size",
        "20",
        "--format",
        "json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *preview_of], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline().startswith(b'{"chunk_id"')
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
