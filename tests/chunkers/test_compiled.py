"""The compiled inner loops say what their twins in Python say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import boundaries, finishing, rulers
from transforms.chunkers.compiled import native
from transforms.chunkers.edges import Edges, edges_of
from transforms.chunkers.graphemes import Graphemes
from transforms.tokenizers.encodings import encoding_tokenizer
from transforms.tokenizers.strong_cuts import strong_cuts

REQUIRED = os.environ.get("CHUNKMILL_REQUIRE_NATIVE") == "1"
pytestmark = pytest.mark.skipif(
    native is None and not REQUIRED, reason="nothing is compiled here (pip install -e . does it)"
)

PIECES = (
    *("- ", "*\t", "  1. x", "(12) ", "1234. ", "\n- ", "\n\t(3)\t", "\n(- ", "\n2.", "•", "\n· "),
    *(
        "a",
        "word ",
        "12,300",
        "Dr. ",
        "e.g. ",
        "No. 5",
        "[12]",
        "[1234]",
        "[…]",
        "(...)",
        "x" * 70,
        "'s ",
        "http://a/b",
    ),
    *(
        ".",
        "!",
        "?",
        "…",
        "。",
        "！",
        "।",
        ")",
        "”",
        "»",
        " »",
        "\u00a0» ",
        "«",
        "]",
        "」",
        "(",
        ",",
        "/",
        "|",
    ),
    *(
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        "\u3000",
        "\u2028",
        "\x1c",
        " \n ",
        "\n \n",
        "\n\t\r\n",
        "\x85",
    ),
    *(
        "é",
        "e\u0301",
        "日本",
        "今日は。",
        "한국",
        "\u1100\u1161",
        "ก็",
        "क्ष",
        "👩‍👩‍👧",
        "🇩🇪🇫🇷",
        "\u0301",
        "\u200d",
        "\ufeff",
        "\u0378",
    ),
)
TEXTS = st.one_of(soup(PIECES), soup(PIECES, min_size=20, max_size=120), st.text(max_size=80))
PLACES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20)


def test_it_is_compiled_where_it_must_be():
    assert native is not None


@given(TEXTS, PLACES)
def test_edges_are_where_they_are(text, places):
    compiled, plain = edges_of(text), Edges(text)
    assert type(compiled) is native.Edges
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        assert compiled.before(low) == plain.before(low)
        assert compiled.after(high) == plain.after(high)
        for keep_spaces in (False, True):
            assert compiled.begin(low, high, keep_spaces) == plain.begin(low, high, keep_spaces)
        assert compiled.finish(high, low) == plain.finish(high, low)


def test_no_character_that_is_taken_to_hang_on_nothing_does():
    asked = []
    edges = native.Edges("", lambda text: asked.append(text) or Graphemes(text))
    assert edges.before(0) == 0
    for code_point in [*range(0x3200), *range(0x3400, 0xD800, 7), *range(0xF900, 0x11000)]:
        for text in (
            f"a{chr(code_point)}",
            f"{chr(code_point)}a",
            f"한{chr(code_point)}",
            f"{chr(code_point)}日",
        ):
            is_edge = len(regex.findall(r"\X", text)) == 2
            assert native.Edges(text, Graphemes).before(1) == is_edge, f"U+{code_point:04X}"


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_counts_and_reaches_are_the_same(encoding):
    tokenizer = encoding_tokenizer(encoding)
    cuts = strong_cuts(encoding)

    @given(TEXTS, PLACES, st.integers(1, 40))
    def same(text, places, budget):
        start = len(text) - len(text.lstrip())
        regions = [(start, len(text.rstrip()))] if text.strip() else []
        compiled = rulers.ruler(text, tokenizer, regions)
        assert type(compiled) is native.PrefixRuler
        ids = [tokenizer.encode_packed(text[low:high]) for low, high in regions]
        plain = rulers.PrefixRuler(text, tokenizer, cuts, ids, regions)
        assert list(compiled.ends) == list(plain.ends)
        for place in places:
            low, high = sorted(round(share * len(text)) for share in place)
            assert compiled.count(low, high) == plain.count(low, high)
            assert compiled.reach(low, budget) == plain.reach(low, budget)
            assert compiled.back(high, budget) == plain.back(high, budget)

    same()


@given(TEXTS, PLACES)
def test_sentences_end_where_they_end(text, places):
    compiled = boundaries.sentences(text)
    assert type(compiled) is native.SentenceLevel
    plain = boundaries.sentence_marks(text)
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        assert compiled.first(low, high) == plain.first(low, high)
        assert compiled.last(low, high) == plain.last(low, high)


@given(TEXTS)
def test_blank_lines_are_where_they_are(text):
    assert native.spans_of_blank_lines(text) == boundaries.spans_of_blank_lines(text)
    paragraphs = native.spans_between_paragraphs(text, boundaries._BULLETS)
    assert paragraphs == boundaries.spans_between_paragraphs(text)
    if "\r" not in text:
        assert native.has_spaced_blank_line(text) == boundaries.has_spaced_blank_line(text)


@given(TEXTS, PLACES)
def test_bytes_and_lines_are_the_same_in_any_order(text, places):
    compiled, plain = native.Teller(text), finishing.Teller(text)
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        if text[low:high].isprintable() or max(text[low:high], default="") < "\ud800":
            assert compiled.slice(low, high) == plain.slice(low, high)


def test_every_chunk_of_every_strategy_is_the_same():
    """The golden table holds for the Python loops too."""
    environment = {**os.environ, "CHUNKMILL_NATIVE": "0"}
    golden = Path(__file__).with_name("test_fingerprint.py")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(golden),
        "-k",
        "spans_it_always_had",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
