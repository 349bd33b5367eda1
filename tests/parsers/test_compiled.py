"""The compiled inner loops of parsing say what their twins in Python say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from soups import soup

from transforms.parsers import compiled
from transforms.parsers.compiled import native
from transforms.parsers.restructured_lines import Lines
from transforms.parsers.restructured_text import parse_restructured_text

REQUIRED = os.environ.get("CHUNKMILL_REQUIRE_NATIVE") == "1"
pytestmark = pytest.mark.skipif(
    native is None and not REQUIRED, reason="nothing is compiled here (pip install -e . does it)"
)


def test_it_is_compiled_where_it_must_be():
    assert native is not None


# What lines of a reStructuredText begin with, hold, end with, and are parted by.
PIECES = (
    *("a", "word ", "b.", "港", "é", "x::", "::", ": ", ":", "\\", "`", "*", "_"),
    *(
        "- ",
        "*\t",
        "+ ",
        "• ",
        "\u2023 x",
        "-",
        "1. x",
        "12) ",
        "(a) ",
        "iv. ",
        "XVI) ",
        "Iv. ",
        "#. ",
        "(1",
        "ab. ",
        "1" * 10 + ". ",
    ),
    *(":f: x", ":f:", ":a\\:b: ", ":a:b: ", ":`x`: ", ":a\\", ":: ", ": x: "),
    *(
        "=",
        "====",
        "\n====\n",
        "\n港\n--\n",
        "--",
        "~~~~",
        "+--+",
        "== ==",
        "| ",
        ".. ",
        "..",
        ".. note::",
        ".. code:: c",
        ">>> ",
        "> ",
    ),
    *(
        "\n",
        "\n",
        "\n\n",
        "\n  ",
        "\n    ",
        "\n\t",
        "\n \t",
        "\r\n",
        "\r",
        " ",
        "\t",
        "\u3000",
        "\x1c",
        "\x85",
        "\u2028",
        "\x0c",
    ),
)
TEXTS = st.one_of(soup(PIECES), soup(PIECES, min_size=20, max_size=120), st.text(max_size=80))


@example("(")
@example("a\n(\n")
@given(TEXTS)
def test_blocks_of_restructured_text_are_the_same(text):
    ours = parse_restructured_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "native", None)
        assert ours == parse_restructured_text(text)


@given(TEXTS)
def test_lines_of_restructured_text_are_the_same(text):
    text = text.replace("\r", "\n")
    ours, plain = native.Lines(text), Lines(text)
    assert ours.last == plain.last
    for at in range(plain.last + 1):
        assert ours.text(at) == plain.text(at)
        assert ours.indent(at) == plain.indent(at)
        assert ours.is_adornment(at) == plain.is_adornment(at)
    for mark in "=a":
        assert ours.beginning_with(mark) == plain.beginning_with(mark)
    for at in filter(plain.text, range(plain.last)):
        for indent in (0, 2):
            assert ours.group(at, indent) == plain.group(at, indent)
            assert ours.indented(at, indent) == plain.indented(at, indent)
        # What stands there alone, with nothing known of what is before.
        made = [], []
        afters = [lines.add_text(at, blocks) for lines, blocks in zip((ours, plain), made, strict=True)]
        assert afters[0] == afters[1]
        assert made[0] == made[1]
        assert ours.before_code == plain.before_code
        assert ours.span(at, afters[0]) == plain.span(at, afters[0])
        afters = [lines.add_heading(at, blocks) for lines, blocks in zip((ours, plain), made, strict=True)]
        assert afters[0] == afters[1]
        assert made[0] == made[1]


def test_lines_that_are_none_are_refused():
    lines = native.Lines("a\n\nb")
    for ask in (lines.text, lines.indent, lines.is_adornment):
        with pytest.raises(IndexError, match="no line 4"):
            ask(4)
    with pytest.raises(ValueError, match="line 1 is blank"):
        lines.add_text(1, [])


@pytest.mark.parametrize("file", ["test_restructured_text.py", "test_html_text.py", "test_tables.py"])
def test_the_python_loops_pass_too(file):
    """What a text must hold to, and that the work grows like the text."""
    environment = {**os.environ, "CHUNKMILL_NATIVE": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command.append(str(Path(__file__).with_name(file)))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
