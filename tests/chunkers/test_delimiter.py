"""The strategy `delimiter`."""

from __future__ import annotations

import pytest
from words import Words

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.parsers import ParseSettings, parse
from transforms.records import Block, Document, RawDocument


def cut(text, size=8, blocks=None, **settings):
    settings = {"tokenizer": Words(), **settings}
    return get_chunker("delimiter", chunk_size=size, **settings).chunk(Document("d", text, blocks=blocks))


def texts(*args, **settings):
    return [chunk.text for chunk in cut(*args, **settings)]


LINES = "\n".join(
    " ".join(f"{letter}{number}" for number in range(1, length + 1))
    for letter, length in (("a", 5), ("b", 5), ("c", 5), ("d", 20), ("e", 5))
)
A, B, C, D, E = LINES.split("\n")
RAGFLOW = "\n。；！？"

# ------------------------------------------------------------------------------------------------------ the budget


def test_lines_are_joined_while_they_fit_and_a_long_one_is_cut_from_its_own_start():
    words = D.split()
    long = [" ".join(words[start : start + 8]) for start in (0, 8, 16)]
    assert texts(LINES, delimiters=RAGFLOW) == [A, B, C, *long, E]
    assert texts(LINES, 10, delimiters=RAGFLOW)[0] == f"{A}\n{B}"


def test_a_soft_budget_closes_a_chunk_once_it_has_passed():
    chunks = cut(LINES, delimiters=RAGFLOW, budget="soft")
    assert [chunk.text for chunk in chunks] == [f"{A}\n{B}", f"{C}\n{D}", E]
    assert [chunk.over_budget for chunk in chunks] == [True, True, False]


def test_a_soft_budget_closes_earlier_by_the_share_of_overlap():
    text = "\n".join(["a b c"] * 6)
    assert [chunk.token_count for chunk in cut(text, 6, budget="soft")] == [9, 9]
    # Closed once there are more than 3 tokens: two lines. The overlap comes on top.
    assert [chunk.token_count for chunk in cut(text, 6, budget="soft", overlap_percent=50)] == [6, 9, 9]


def test_indentation_between_blocks_is_no_chunk_of_a_soft_budget():
    text = "- item\n\ta word"
    blocks = (Block("list_item", 0, 8), Block("paragraph", 8, len(text)))
    assert texts(text, 1, blocks=blocks, budget="soft", merge=False) == ["- item", "\ta word"]


@pytest.mark.parametrize("budget", ["hard", "soft"])
@pytest.mark.parametrize("percent", [0, 25])
def test_the_overlap_is_counted(percent, budget):
    for chunk in cut(LINES, delimiters=RAGFLOW, overlap_percent=percent, budget=budget):
        assert chunk.token_count == len(chunk.text.split())
        assert chunk.over_budget == (chunk.token_count > 8)
        assert budget == "soft" or not chunk.over_budget


def test_overlap_is_a_share_of_the_budget_in_tokens():
    assert texts(f"{A}\n{B}", overlap_percent=25) == [A, f"a4 a5\n{B}"]
    assert texts(f"{A}\n{B}", overlap_percent=25) == texts(f"{A}\n{B}", chunk_overlap=2)


# -------------------------------------------------------------------------------------------------- the delimiters


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        ("\n!?", ("\n", "!", "?")),
        ("`@@`", ("@@",)),
        ("\n`@@`。", ("\n", "@@", "。")),
        (r"\n\t;", ("\t", "\n", ";")),
        ("`##``--`", ("##", "--")),
        ("`\n\n`。", ("\n\n", "。")),
        (r"`\n\n``a\tb`", ("\n\n", "a\tb")),
        (["b", "a", "b"], ("a", "b")),
    ],
)
def test_a_string_is_read_as_ragflow_reads_it(given, parsed):
    assert get_chunker("delimiter", delimiters=given).delimiters == parsed


@pytest.mark.parametrize("given", [";` ` `", "`a", "``", "` `", "`\t `", r"`\t`", "", [], [""], [1], None])
def test_what_is_no_delimiter_is_refused(given):
    with pytest.raises(ConfigError, match="delimiters"):
        get_chunker("delimiter", delimiters=given)


def test_two_kinds_of_overlap_are_refused():
    with pytest.raises(ConfigError, match=r"^overlap_percent=10: cannot be given beside chunk_overlap=2"):
        get_chunker("delimiter", overlap_percent=10, chunk_overlap=2)


@pytest.mark.parametrize("percent", [-1, 91, 100])
def test_a_share_of_overlap_is_from_0_to_90(percent):
    with pytest.raises(ConfigError, match="overlap_percent"):
        get_chunker("delimiter", overlap_percent=percent)


MARKS = "K@@@@L@@M\n\nN"


def test_a_custom_delimiter_does_not_switch_joining_off():
    assert texts(MARKS, 512, delimiters="`@@`") == [MARKS]
    assert texts(MARKS, 512, delimiters="\n`@@`。") == [MARKS]


def test_without_joining_each_piece_is_a_chunk_with_all_delimiters_after_it():
    assert texts(MARKS, 512, delimiters="`@@`", merge=False) == ["K@@@@", "L@@", "M\n\nN"]


def test_delimiters_can_be_left_out_which_is_recorded():
    chunker = get_chunker("delimiter", delimiters="`@@`", merge=False, drop_delimiters=True)
    result = chunker.chunk_document(Document("d", MARKS))
    assert [chunk.text for chunk in result.chunks] == ["K", "L", "M\n\nN"]
    assert result.lost == 0
    assert result.notes == {"dropped delimiters": 3}


@pytest.mark.parametrize("text", ["@@", "@@@@\n@@", " @@ "])
def test_a_document_of_delimiters_that_are_left_out_is_skipped(text):
    result = get_chunker("delimiter", delimiters="`@@`", drop_delimiters=True).chunk_document(
        Document("d", text)
    )
    assert (result.status, result.reason, result.chunks) == ("skipped", "nothing is left of it", ())
    assert result.notes == {"dropped delimiters": text.count("@@")}


def test_a_chunk_without_its_delimiters_has_the_spans_between_them():
    (chunk,) = cut("one;; two; three", delimiters=";", drop_delimiters=True)
    assert chunk.text == "one two three"
    assert chunk.spans == ((0, 3), (5, 9), (10, 16))


def test_white_space_is_no_delimiter_that_is_left_out():
    assert texts("one\ntwo;three", delimiters="\n;", drop_delimiters=True) == ["one\ntwothree"]


def test_the_longest_delimiter_counts():
    assert texts("a;;b;c", 1, delimiters=[";", ";;"], merge=False) == ["a;;", "b;", "c"]
    assert texts("a...b", 9, delimiters=["..", "..."], merge=False, drop_delimiters=True) == ["a", "b"]


def test_a_block_ends_a_piece():
    text = "a b c d e f g h"
    blocks = (Block("paragraph", 0, 5), Block("paragraph", 6, 15))
    assert texts(text, 5, blocks=blocks) == ["a b c", "d e f g h"]


# ------------------------------------------------------------------------------------------------------- children


def test_children_stand_under_their_chunk_and_hold_its_new_text():
    chunks = cut("a b. c d.\ne f. g h.", 5, overlap_percent=20, child_delimiters=[". "])
    parents = [chunk for chunk in chunks if chunk.parent_id is None]
    assert [chunk.text for chunk in parents] == ["a b. c d.", "d.\ne f. g h."]
    for parent, children in zip(parents, [["a b.", "c d."], ["e f.", "g h."]], strict=True):
        assert [chunk.text for chunk in chunks if chunk.parent_id == parent.chunk_id] == children
    assert [chunk.index for chunk in chunks] == list(range(6))


def test_a_chunk_that_child_delimiters_do_not_cut_has_no_children():
    assert texts("a b\nc d", 2, child_delimiters=[";"]) == ["a b", "c d"]


def test_a_fallback_has_no_children():
    fallback = {"name": "delimiter", "child_delimiters": [";"]}
    with pytest.raises(ConfigError, match=r"^fallback='delimiter': cuts children"):
        get_chunker("heading", fallback=fallback)


# -------------------------------------------------------------------------------------------------- position tags

SECTIONS = [
    "Harbour rules apply to every boat.@@1\t10.0\t200.0\t30.0\t42.0##",
    "Report to the warden on arrival.@@1\t10.0\t200.0\t50.0\t62.0##",
    "This line runs over the page end.@@1-2\t10.0\t200.0\t780.0\t18.0##",
    "Write to @@ home ## or call 12@@7##.@@2\t10.0\t200.0\t40.0\t52.0##",
]
CLEAN = [section[: section.rindex("@@")] for section in SECTIONS]
TOPS = [{(1, 30.0)}, {(1, 50.0)}, {(1, 780.0), (2, 780.0)}, {(2, 40.0)}]


@pytest.mark.parametrize("percent", [0, 30])
def test_a_chunk_has_the_boxes_of_the_sections_whose_text_it_holds(percent):
    raw = RawDocument("d", "\n".join(SECTIONS), "text/plain")
    document = parse(raw, ParseSettings(position_tags=True))
    assert document.text == "\n".join(CLEAN)
    chunker = get_chunker("delimiter", chunk_size=8, overlap_percent=percent, tokenizer=Words())
    chunks = chunker.chunk(document)
    assert len(chunks) == 4
    for place, chunk in enumerate(chunks):
        held = [place - 1, place] if chunk.overlap else [place]
        assert chunk.text.endswith(CLEAN[place])
        assert {(found.page, found.box[1]) for found in chunk.locations} == set().union(
            *(TOPS[section] for section in held)
        )
    # The last one has 8 tokens of its own, so there is no room for an overlap.
    assert [bool(chunk.overlap) for chunk in chunks] == [False, percent > 0, percent > 0, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Head text\n" + "\n" * 200_000 + "Tail text\n", ["Head text", "Tail text"]),
        ("\n\n".join(f"para {i:06}, {'x' * 60}" for i in range(20_000)), ["para 000000", "para 019999"]),
        ("\n".join(f"line {i:06} of a page" for i in range(30_000)) + "\n\nTHE END.\n", ["THE END."]),
    ],
    ids=["blank lines", "small paragraphs", "many lines"],
)
def test_long_texts_are_cut_in_time(text, words):
    found = texts(text, 200, chunk_overlap=20, tokenizer="character")
    assert all(any(word in chunk for chunk in found) for word in words)
    assert all(chunk.strip() and len(chunk) <= 200 for chunk in found)
