"""The README says what the code does. `python tests/test_readme.py` writes its tables anew."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import cli
from pipelines.options import JobSettings, column_flag, run_parser, run_settings
from transforms.chunkers import CHUNKERS, Chunker
from transforms.schemas import CHUNK_COLUMNS
from transforms.sources.columns import COLUMNS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def chunkers() -> str:
    """A row for each strategy."""
    rows = [
        (
            f"`{name}`",
            (kind.__doc__ or "").splitlines()[0],
            ", ".join(
                f"`{name}` {json.dumps(value)}"
                for name, value in cli._defaults(kind()).items()
                if name != "engine"
            ),
        )
        for name, kind in sorted(CHUNKERS.items())
    ]
    return table("strategy", "how it cuts", "settings and defaults", rows=rows)


def columns() -> str:
    """A row for each column of the chunk table."""
    rows = [
        (f"`{c.name}`", type_name(c.type) + ", not null" * c.required, c.description) for c in CHUNK_COLUMNS
    ]
    return table("column", "type", "what it holds", rows=rows)


def type_name(type_: pa.DataType) -> str:
    """Arrow's name of a type, with lists and structs as one would say them."""
    if pa.types.is_list(type_):
        return f"list of {type_name(type_.value_type)}"
    if pa.types.is_struct(type_):
        fields = (f.name + (": " + type_name(f.type) if pa.types.is_struct(f.type) else "") for f in type_)
        return f"struct({', '.join(fields)})"
    return "timestamp (us, UTC)" if pa.types.is_timestamp(type_) else str(type_)


INPUTS = {
    "document_id": "Id, unique in the corpus; without the column, made of file and row.",
    "uri": "Address of the document, if it is not the file.",
    "text": "The text.",
    "content": "The document's bytes, to be decoded and parsed; used where `text` is null.",
    "blocks": "The text in typed pieces.",
    "media_type": "Media type; told by the document's address if it is missing.",
    "title": "Title.",
    "language": "Language, BCP 47.",
    "license": "Licence, SPDX.",
    "acl_labels": "Labels of those who may read it, handed on to every chunk.",
    "tenant_id": "Owner, handed on to every chunk.",
    "metadata": "Further facts, handed on to every chunk as JSON.",
    "version": "Version id of the source.",
    "etag": "Entity tag of the source.",
    "size": "Bytes of the source.",
    "modified_at": "Last change of the source.",
    "content_sha256": "SHA-256 of the source's bytes; computed if it is missing.",
}
"""What a column of an input holds."""


def inputs() -> str:
    """A row for each column that a Parquet input may have."""
    rows = [
        (f"`{name}`", re.sub("^an? | column$", "", needed), f"`--{column_flag(name)}`", INPUTS[name])
        for name, (_, needed) in COLUMNS.items()
    ]
    return table("column", "type", "flag for another name", "what it holds", rows=rows)


def flags() -> str:
    """A row for each flag of `chunkmill run`, columns of Parquet inputs apart."""
    parser = argparse.ArgumentParser()
    run_parser(parser)
    of_columns = {f"--{column_flag(name)}" for name in COLUMNS}
    rows = []
    for group in sorted(parser._action_groups, key=lambda group: group.title != "job"):
        for action in group._group_actions:
            name = action.option_strings[-1 if action.option_strings[0] == "-h" else 0]
            if name in of_columns or name == "--help":
                continue
            text, _, default = (action.help or "").replace("%%", "%").partition(" Default: ")
            field = JobSettings.model_fields.get(name[2:])
            if name[2:] in Chunker.model_fields:
                default = "the strategy's"
            elif field and field.is_required():
                default = "needed"
            elif default:
                default = f"`{default}`"
            shown = name.replace("--", "--[no-]") if len(action.option_strings) == 2 else name
            choices = ", ".join(f"`{choice}`" for choice in action.choices or ())
            rows.append((f"`{shown}`", default, text + f" One of {choices}." * bool(choices)))
    return table("flag", "default", "what it does", rows=rows)


def table(*head: str, rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {"chunkers": chunkers, "columns": columns, "inputs": inputs, "flags": flags}


def between(name: str) -> re.Pattern[str]:
    """Where a generated part stands."""
    return re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)


def update() -> None:
    """Write the generated parts."""
    text = README.read_text("utf-8")
    for name, make in TABLES.items():
        made = f"\n{make()}\n\n"
        text = between(name).sub(lambda _, made=made: made, text, count=1)
    README.write_text(text, "utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", TABLES)
def test_tables_say_what_the_code_says(name: str) -> None:
    found = between(name).search(README.read_text("utf-8"))
    assert found
    assert found[0].strip() == TABLES[name](), "out of date: run `python tests/test_readme.py`"


def test_exit_statuses_are_those_of_the_command() -> None:
    assert cli._EXIT_STATUS.partition("\n")[2] in README.read_text("utf-8")


def test_the_config_file_is_accepted(tmp_path: Path) -> None:
    config = tmp_path / "job.yaml"
    config.write_text(blocks("yaml")[0], "utf-8")
    settings = run_settings({}, str(config))
    assert (settings.chunker.name, settings.chunker.chunk_size) == ("heading", 400)


def test_one_document_without_beam() -> None:
    code = blocks("python")[0] + '\nimport sys\nassert "apache_beam" not in sys.modules\n'
    printed = run([sys.executable, "-W", "error", "-c", code], cwd=ROOT)
    assert "('Berths',)" in printed
    assert "Berth 214" in printed


def test_stages_in_a_pipeline_of_ones_own(tmp_path: Path) -> None:
    code = blocks("python")[1].replace('"out"', repr(str(tmp_path)))
    run([sys.executable, "-c", code], cwd=ROOT)
    files = list(tmp_path.glob("chunks/**/*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) > 238


def test_main_command_and_verify(tmp_path: Path) -> None:
    command = blocks("sh")[0].replace("\\\n", "").partition(".venv/bin/chunkmill ")[2]
    output = str(tmp_path / "out")
    arguments = [output if word == "out" else word for word in shlex.split(command)]
    printed = run([sys.executable, "-m", "pipelines.cli", *arguments], cwd=ROOT)
    assert [line.split()[0] for line in printed.splitlines()] == report_names(), (
        "the report in the README is old"
    )
    shown = re.search(r"out/\n  chunks/(chunker=\S+?/source=\S+?)/", README.read_text("utf-8"))
    assert shown
    assert list(Path(output, "chunks", shown[1]).glob("part-*.parquet")), "the layout in the README is old"
    verify = re.search(r"`chunkmill (verify out .*)`", README.read_text("utf-8"))
    assert verify
    arguments = [output if word == "out" else word for word in shlex.split(verify[1])]
    assert "faults     none" in run([sys.executable, "-m", "pipelines.cli", *arguments], cwd=ROOT)


def report_names() -> list[str]:
    """The first words of the report that the README shows."""
    shown = next(block for block in blocks("text") if block.startswith("documents"))
    return [line.split()[0] for line in shown.splitlines()]


def test_the_sample_is_what_its_script_makes() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'sample')!r}); import build; print(len(build.rows()));"
    )
    code += "import pyarrow.parquet as pq; assert build.rows() == pq.read_table(build.OUTPUT).to_pylist()"
    assert run([sys.executable, "-c", code], cwd=ROOT).strip() == "238"


def run(command: list[str], cwd: Path) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    update()
