"""The strategy `sentence`."""

from __future__ import annotations

import pytest

from transforms.chunkers import get_chunker
from transforms.records import Block, Document


def cut(text, size, overlap=0, blocks=None, **settings):
    chunker = get_chunker(
        "sentence", chunk_size=size, chunk_overlap=overlap, **{"tokenizer": "character", **settings}
    )
    return chunker.chunk(Document("d", text, blocks=blocks))


def texts(*args, **kwargs):
    return [chunk.text for chunk in cut(*args, **kwargs)]


def test_sentences_are_joined_while_they_fit():
    text = "One two. Three four! Five? Six seven eight. Nine."
    assert texts(text, 20) == ["One two. Three four!", "Five?", "Six seven eight.", "Nine."]
    assert texts(text, 26) == ["One two. Three four! Five?", "Six seven eight. Nine."]
    assert texts(text, 100) == [text]


def test_no_chunk_begins_with_the_mark_that_ends_a_sentence():
    text = "今日は晴れ。明日は雨？船は出る！هل وصلت السفينة؟ نعم وصلت۔ जहाज आया। सब खुश हैं।"
    assert texts(text, 16) == [
        "今日は晴れ。明日は雨？船は出る！",
        "هل وصلت السفينة؟",
        "نعم وصلت۔",
        "जहाज आया।",
        "सब खुश हैं।",
    ]


def test_a_line_break_alone_ends_no_sentence():
    text = "The ferry leaves\nat ten. It is\nlate."
    assert texts(text, 25) == ["The ferry leaves\nat ten.", "It is\nlate."]


def test_a_blank_line_ends_a_sentence():
    assert texts("A heading\n\nThe ferry leaves. Yes.", 20) == ["A heading", "The ferry leaves.", "Yes."]


def test_an_item_of_a_list_begins_a_sentence():
    text = "Bring:\n- a coat and\n  a hat\n- a ticket\n1. Go"
    assert texts(text, 27) == ["Bring:\n- a coat and\n  a hat", "- a ticket\n1. Go"]


def test_a_block_of_the_document_ends_a_sentence():
    text = "Crossings\nThe ferry leaves at ten."
    blocks = (Block("heading", 0, 9, level=1), Block("paragraph", 10, len(text)))
    assert texts(text, 30, blocks=blocks) == ["Crossings", "The ferry leaves at ten."]
    assert texts(text, 34, blocks=blocks) == [text]


def test_a_sentence_over_budget_is_cut_at_its_lines_then_clauses_then_words():
    assert texts("One two\nthree four five. Six.", 16) == ["One two", "three four five.", "Six."]
    assert texts("One, two three, four. Five.", 15) == ["One, two three,", "four.", "Five."]
    assert texts("one two three four. Five.", 10) == ["one two", "three", "four.", "Five."]


def test_code_and_tables_are_no_prose():
    code = "```\na = b. c\nd = e! f\n```"
    text = f"Some code. Here:\n\n{code}\n\nThe end."
    start = text.index("```")
    blocks = (
        Block("paragraph", 0, start - 2),
        Block("code", start, start + len(code)),
        Block("paragraph", start + len(code) + 2, len(text)),
    )
    assert texts(text, 30, blocks=blocks) == ["Some code. Here:", code, "The end."]
    assert texts(text, 15, blocks=blocks) == [
        "Some code.",
        "Here:",
        "```\na = b. c",
        "d = e! f\n```",
        "The end.",
    ]


def test_overlap_is_whole_sentences_from_the_end_of_the_chunk_before():
    text = "Aa aa. Bb bb. Cc cc. Dd dd. Ee ee."
    assert texts(text, 20, 7) == ["Aa aa. Bb bb. Cc cc.", "Cc cc. Dd dd. Ee ee."]
    assert texts(text, 20, 13) == ["Aa aa. Bb bb. Cc cc.", "Bb bb. Cc cc. Dd dd.", "Dd dd. Ee ee."]


def test_there_is_no_overlap_where_no_whole_sentence_fits():
    assert texts("Aa aa. Bb bb bb bb. Cc cc cc cc. Dd.", 20, 8) == ["Aa aa. Bb bb bb bb.", "Cc cc cc cc. Dd."]


def test_overlap_gives_way_to_a_sentence_that_needs_the_room():
    text = "Aa. Bb. Cc cc cc cc cc cc. Dd."
    assert texts(text, 22, 7) == ["Aa. Bb.", "Bb. Cc cc cc cc cc cc.", "Dd."]
    assert texts(text, 18, 7) == ["Aa. Bb.", "Cc cc cc cc cc cc.", "Dd."]


def test_a_part_of_a_sentence_is_no_overlap():
    text = "one two three four five six seven eight nine ten. Next one. Last."
    assert texts(text, 20, 11) == [
        "one two three four",
        "five six seven eight",
        "nine ten.",
        "Next one. Last.",
    ]


def test_overlap_begins_where_a_line_of_a_list_begins():
    assert texts("- aa aa\n- bb bb\n- cc cc", 15, 7) == ["- aa aa\n- bb bb", "- bb bb\n- cc cc"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Head text\n" + "\n" * 200_000 + "Tail text\n", ["Head text", "Tail text"]),
        ("\n\n".join(f"para {i:06}, {'x' * 60}" for i in range(20_000)), ["para 000000", "para 019999"]),
        ("\n".join(f"line {i:06} of a page" for i in range(30_000)) + "\n\nTHE END.\n", ["THE END."]),
    ],
    ids=["blank lines", "small paragraphs", "a far stop"],
)
def test_long_texts_are_cut_in_time(text, words):
    found = texts(text, 200, 20)
    assert all(any(word in chunk for chunk in found) for word in words)
    assert all(chunk.strip() and len(chunk) <= 200 for chunk in found)
