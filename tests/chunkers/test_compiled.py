"""The compiled inner loops say what their twins in Python say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from itertools import count, cycle, pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st
from soups import soup

from transforms.chunkers import (
    boundaries,
    compiled,
    filling,
    finishing,
    get_chunker,
    levels,
    measured,
    measured_text,
    packing,
    rulers,
)
from transforms.chunkers.compiled import native
from transforms.chunkers.context import Context
from transforms.chunkers.edges import Edges, edges_of
from transforms.chunkers.graphemes import Graphemes
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.records import Block, Document, Location
from transforms.tokenizers import get_tokenizer
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
    ours, plain = edges_of(text), Edges(text)
    assert type(ours) is native.Edges
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        assert ours.before(low) == plain.before(low)
        assert ours.after(high) == plain.after(high)
        for keep_spaces in (False, True):
            assert ours.begin(low, high, keep_spaces) == plain.begin(low, high, keep_spaces)
        assert ours.finish(high, low) == plain.finish(high, low)


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
        ours = rulers.ruler(text, tokenizer, regions)
        assert type(ours) is native.PrefixRuler
        plain = rulers.PrefixRuler(text, tokenizer, cuts, regions)
        assert list(ours.ends) == list(plain.ends)
        for place in places:
            low, high = sorted(round(share * len(text)) for share in place)
            assert ours.count(low, high) == plain.count(low, high)
            assert ours.reach(low, budget) == plain.reach(low, budget)
            assert ours.back(high, budget) == plain.back(high, budget)

    same()


@given(TEXTS, PLACES)
def test_sentences_end_where_they_end(text, places):
    ours = boundaries.sentences(text)
    assert type(ours) is native.SentenceLevel
    plain = boundaries.sentence_marks(text)
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        assert ours.first(low, high) == plain.first(low, high)
        assert ours.last(low, high) == plain.last(low, high)


@given(TEXTS, PLACES)
def test_blank_lines_are_where_they_are(text, places):
    ours, plain = boundaries.blank_lines(text), levels.PlaceLevel(*boundaries.spans_of_blank_lines(text))
    assert type(ours) is native.BlankLineLevel
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        assert ours.first(low, high) == plain.first(low, high)
        assert ours.first(low - 1, high) == plain.first(low - 1, high)
        assert ours.last(low, high) == plain.last(low, high)


@given(TEXTS)
def test_paragraphs_are_where_they_are(text):
    paragraphs = native.spans_between_paragraphs(text, boundaries._BULLETS)
    assert paragraphs == boundaries.spans_between_paragraphs(text)


SPANS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3)), max_size=6)


def spans_in(text, shares):
    """Spans of a text, ascending and apart."""
    spans, held = [], 0
    for start, size in sorted(shares):
        low = max(held, round(start * len(text)))
        high = min(len(text), low + max(1, round(size * len(text))))
        if low < high:
            spans.append((low, high))
            held = high
    return spans


@given(TEXTS, PLACES, SPANS, st.sampled_from(["\n", "\n\n", ". ", "a", "日本"]))
def test_levels_have_their_boundaries_where_they_have_them(text, places, shares, separator):
    spans = spans_in(text, shares)
    edges = sorted({edge for span in spans for edge in span})

    def kinds(of):
        one, words = of.SeparatorLevel(text, separator), of.WordLevel(text)
        given = of.PlaceLevel(edges, edges)
        found = [one, words, given, of.PlaceLevel([a for a, _ in spans], [b for _, b in spans])]
        found += [of.AnyOf([given, one]), of.AnyOf([levels.SeparatorLevel(text, " "), words])]
        return found + [
            of.KeepingWhole(level, [a for a, _ in spans], [b for _, b in spans]) for level in found
        ]

    for ours, plain in zip(kinds(native), kinds(levels), strict=True):
        assert type(ours) is getattr(native, type(plain).__name__)
        for place in places:
            low, high = sorted(round(share * len(text)) for share in place)
            assert ours.first(low, high) == plain.first(low, high)
            assert ours.first(low - 1, high) == plain.first(low - 1, high)
            assert ours.last(low, high) == plain.last(low, high)


KINDS = ("heading", "paragraph", "table", "code", "quote", "table_row")


@given(
    TEXTS,
    SPANS,
    st.lists(st.sampled_from(KINDS), min_size=6, max_size=6),
    st.integers(1, 30),
    st.floats(0, 0.9),
    st.sampled_from(["plain", "own separators", "whole sentences", "few lines", "little room", "characters"]),
)
def test_chunks_are_filled_alike(text, shares, kinds, size, share, how):
    spans = spans_in(text, shares)
    blocks = [Block(kind, *span, level=1, title="T") for kind, span in zip(kinds, spans, strict=False)]
    tokenizer = get_tokenizer("character" if how == "characters" else "cl100k_base")
    measured = Measured(Document("d", text), blocks, tokenizer)
    if how == "little room":
        measured.room = lambda start, budget: budget - start % 2 if budget > 1 else budget
    settings = [measured, size, int(size * share)]
    if how == "own separators":
        settings += [(("\n", "。"), (" ",)), {}]
    overlap_of = "line" if how == "whole sentences" else None
    found = []
    for module in (packing, PLAIN_PACKING):
        packer = module.Packer(*settings, overlap_of=overlap_of)
        assert isinstance(packer, (native if module is packing else filling).Filler)
        with measured.at_most_lines(2 if how == "few lines" else 0):
            pieces = packer.pack(measured.start, measured.end)
        found.append([[getattr(piece, fact) for fact in FACTS] for piece in pieces])
    assert found[0] == found[1]


FACTS = ("start", "new", "end", "tokens", "over_budget")


HEADINGS = st.lists(
    st.tuples(
        st.sampled_from([None, -1, 1, 2, 3, 6, 9]), st.sampled_from([None, "", " ", "T", "# T", "Tide"])
    ),
    min_size=6,
    max_size=6,
)


@given(
    TEXTS,
    SPANS,
    st.lists(st.sampled_from(("heading", *KINDS)), min_size=6, max_size=6),
    HEADINGS,
    PLACES,
    st.integers(1, 40),
    st.sampled_from(["cl100k_base", "character"]),
)
def test_a_document_is_measured_alike(text, shares, kinds, headings, places, budget, encoding):
    blocks = [
        Block(kind, *span, level=level, title=title)
        for kind, span, (level, title) in zip(kinds, spans_in(text, shares), headings, strict=False)
    ]
    arguments = Document("d", text, title="Title"), blocks, get_tokenizer(encoding)
    ours, plain = Measured(*arguments), PLAIN_MEASURED.Measured(*arguments)
    assert isinstance(ours, native.MeasuredText)
    assert isinstance(plain, measured_text.MeasuredText)
    for fact in MEASURES:
        assert getattr(ours, fact) == getattr(plain, fact), fact
    for fact in COLUMNS:
        assert list(getattr(ours, fact)) == list(getattr(plain, fact)), fact
    assert ours.headings(0, len(text)) == plain.headings(0, len(text))
    for place in places:
        low, high = sorted(round(share * len(text)) for share in place)
        for ask in ("count", "trim", "kind_of", "begin"):
            assert getattr(ours, ask)(low, high) == getattr(plain, ask)(low, high), ask
        for ask in ("edge_before", "edge_after", "path_at"):
            assert getattr(ours, ask)(low) == getattr(plain, ask)(low), ask
        assert ours.finish(high, low) == plain.finish(high, low)
        for lines in (0, 1, 3):
            with ours.at_most_lines(lines), plain.at_most_lines(lines):
                assert ours.reach(low, budget) == plain.reach(low, budget)
        pieces = packing.whole(ours, low, high, budget), PLAIN_PACKING.whole(plain, low, high, budget)
        facts = [piece and [getattr(piece, fact) for fact in FACTS] for piece in pieces]
        assert facts[0] == facts[1]


MEASURES = (
    *("text", "title", "start", "end", "regions", "notes", "removed", "bound", "limit"),
    *("has_tables", "path_starts", "paths"),
)
COLUMNS = ("blocks", "block_kinds", "block_starts", "block_ends")


@pytest.mark.parametrize("gap", [rulers.HARD_GAP - 1, rulers.HARD_GAP])
def test_hard_gaps_are_where_they_are(gap):
    text = f" one{chr(10) * gap}two "
    arguments = Document("d", text), (), get_tokenizer("cl100k_base")
    ours, plain = Measured(*arguments), PLAIN_MEASURED.Measured(*arguments)
    assert ours.regions == plain.regions
    for slice_ in ((0, 4), (1, 4), (1, 5), (1, len(text)), (gap + 4, gap + 7)):
        assert ours.count(*slice_) == plain.count(*slice_)


def plain(module):
    """A module as it is where nothing is compiled."""
    spec = importlib.util.spec_from_file_location(f"plain_{module.__name__}", module.__file__)
    found = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "native", None)
        spec.loader.exec_module(found)
    return found


PLAIN_MEASURED, PLAIN_PACKING = plain(measured), plain(packing)


TABLE = "| port | tide |\n|---|---|\n" + "| Ost | 1.5 |\n" * 9
SHARES = st.floats(0, 1)


def blocks_between(places, kinds, text):
    """Blocks of several kinds, some with locations and images, and a table at the end of the text."""
    found = []
    for (start, end), kind, which in zip(pairwise(places), cycle(kinds), count()):
        heading = {"level": which % 3 + 1, "title": f"Head {which % 5}"} if kind == "heading" else {}
        locations = (Location(which), Location(4, (0.0, 1.0, 2.0, 3.0)))[: which % 4 // 2]
        if which % 5:
            found.append(
                Block(kind, start, end, **heading, locations=locations, images=("i",) * (which % 7 == 1))
            )
    return [*found, Block("table", len(text) - len(TABLE), len(text))]


@given(
    TEXTS,
    st.lists(st.tuples(SHARES, st.floats(0, 0.4), st.integers(0, 7)), max_size=8),
    st.lists(SHARES, max_size=9),
    st.lists(st.sampled_from(["heading", "table", "table_row", "code", "paragraph"]), min_size=1, max_size=5),
)
def test_pieces_become_the_same_chunks(text, shares, edges, kinds):
    assume(max(text, default="") < "\ud800" or text.isprintable())
    places = sorted({round(edge * len(text)) for edge in edges})
    text += f"\n\n{TABLE}"
    pieces = []
    for place, (start, size, how) in enumerate(sorted(shares)):
        low = round(start * len(text))
        high = min(len(text), low + max(1, round(size * len(text))))
        if low < high:
            middle = (low + high) // 2
            spans = ((low, middle), (middle + 1, high)) if how & 1 and low < middle < high - 1 else None
            pieces.append(
                Piece(
                    *(low, low, high, high - low, bool(how & 2), "code" if how & 4 else None, how or None),
                    parent=0 if pieces and how & 2 else None,
                    fallback="token" if how & 4 else None,
                    spans=spans,
                    derived=f"derived {place} é" if how == 7 else None,
                )
            )
    document = Document("d", text, "text/markdown", title="Title", acl_labels=("a",), tenant_id="t")
    chunker = get_chunker("recursive", chunk_size=60, tokenizer="character")
    for blocks in (blocks_between(places, kinds, text), ()):
        for kind, in_budget in (("full", False), ("headings", True), ("none", False)):
            measured = Measured(document, blocks, chunker.counter)
            context = Context(measured, kind, 60, in_budget, chunker.counter)
            made = [
                make(measured, pieces, chunker.record, context)
                for make in (finishing._chunks_of, finishing.chunks_of)
            ]
            assert made[0] == made[1]


@pytest.mark.parametrize(
    ("file", "tests"), [("test_fingerprint.py", "spans_it_always_had"), ("test_linear_cost.py", "")]
)
def test_the_python_loops_pass_too(file, tests):
    """The golden table holds for them, and their work grows like the text."""
    environment = {**os.environ, "CHUNKMILL_NATIVE": "0"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [str(Path(__file__).with_name(file)), "-k", tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout
