"""`recursive`: the coarsest level that is present, neighbours joined while they fit, finer only where it must be."""

from __future__ import annotations

import math
import unicodedata

import pytest
from words import Words

from transforms.chunkers import get_chunker
from transforms.errors import ConfigError
from transforms.records import Block, Document


def chunks(text, chunk_size, chunk_overlap=0, blocks=None, **settings):
    settings = {"tokenizer": "character", **settings}
    chunker = get_chunker("recursive", chunk_size=chunk_size, chunk_overlap=chunk_overlap, **settings)
    found = chunker.chunk(Document("d", text, blocks=blocks))
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in found)
    held = {place for chunk in found for place in range(chunk.start, chunk.end)}
    assert all(place in held for place, character in enumerate(text) if not character.isspace())
    assert all(chunk.token_count <= chunk_size for chunk in found)
    return found


def texts(*args, **settings):
    return [chunk.text for chunk in chunks(*args, **settings)]


# --------------------------------------------------------------------------------------------------- the ladder


def test_it_splits_at_the_coarsest_level_present():
    text = "One. Two.\nThree.\n\nFour. Five."
    assert texts(text, 100) == [text]
    assert texts(text, 20) == ["One. Two.\nThree.", "Four. Five."]
    assert texts(text, 12) == ["One. Two.", "Three.", "Four. Five."]
    assert texts(text, 8) == ["One.", "Two.", "Three.", "Four.", "Five."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two\n\nthree four", ["one two", "three four"]),
        ("one two\nthree four", ["one two", "three four"]),
        ("Be it. One two, six", ["Be it.", "One two, six"]),
        ("be it, one two six", ["be it,", "one two six"]),
        ("be it one two six", ["be it one", "two six"]),
        ("beitonetwosixtysix", ["beitonetwosi", "xtysix"]),
    ],
    ids=["blank line", "line", "sentence", "clause", "word", "grapheme"],
)
def test_each_level_of_the_ladder_in_turn(text, expected):
    assert texts(text, 12) == expected


def test_neighbours_are_joined_while_they_fit():
    assert texts("a\n\nb\n\nc\n\nd\n\ne", 7) == ["a\n\nb\n\nc", "d\n\ne"]
    assert texts("aa. bb. cc. dd. ee.", 11) == ["aa. bb. cc.", "dd. ee."]


def test_joined_text_is_counted_anew_and_not_added_up():
    # Five pieces of a word or two each; joined they are two words.
    assert texts("a-b-c-d e-f-", 2, tokenizer=Words(), separators=["-"]) == ["a-b-c-d e-f-"]
    assert texts("a-b-c-\nd-e-f-", 1, tokenizer=Words(), separators=["-"]) == ["a-b-c-", "d-e-f-"]


def test_only_what_is_too_large_goes_one_level_down():
    text = "Short one.\n\nA long paragraph. With two sentences.\n\nShort two."
    assert texts(text, 20) == ["Short one.", "A long paragraph.", "With two sentences.", "Short two."]


def test_two_characters_of_a_line_end_are_no_blank_line():
    text = "one\r\ntwo\r\n\r\nthree\r\nfour"
    assert texts(text, 12) == ["one\r\ntwo", "three\r\nfour"]
    assert texts(text.replace("\r\n", "\n"), 12) == ["one\ntwo", "three\nfour"]
    assert texts(text.replace("\r\n", "\r"), 12) == ["one\rtwo", "three\rfour"]


def test_blank_lines_with_spaces_are_blank_lines():
    assert texts("one\ntwo\n \t\nthree\nfour", 12) == ["one\ntwo", "three\nfour"]


def test_gaps_between_words_push_no_chunk_over_its_budget():
    for chunk_overlap in (2, 0.5):
        assert texts("up  to  us  we  go", 4, chunk_overlap) == ["up", "to", "us", "we", "go"]


@pytest.mark.parametrize(
    "text",
    ["เรือข้ามฟากออกทุกสิบนาที" * 40, "ទូកឆ្លងទន្លេចេញរៀងរាល់ម៉ោង" * 20, "渡し船は十分おきに出ます" * 40],
    ids=["Thai", "Khmer", "Japanese"],
)
def test_scripts_without_spaces_are_cut_between_clusters(text):
    found = chunks(text, 50)
    assert len(found) >= math.ceil(len(text) / 50)
    assert not any(unicodedata.category(chunk.text[0]) in ("Mn", "Mc", "Me") for chunk in found)
    assert "".join(chunk.text for chunk in found) == text
    assert all(chunk.token_count > 40 for chunk in found[:-1])


def test_a_link_that_fits_stays_whole_and_an_image_that_does_not_is_cut_by_itself():
    link = "https://example.org/ferry/2026/winter/timetable.html?day=mon&from=north%20quay#row-17"
    image = f"![map](data:image/png;base64,{'iVBORw0KGgoAAAANSUhEUgAA' * 50})"
    before = f"Winter service is reduced. See the [timetable]({link}) before you travel. The last boat leaves late."
    found = texts(f"{before}\n\n{image}\n\nAfter the map.\n", 120)
    assert sum(link in text for text in found) == 1
    assert found[-1] == "After the map."
    assert found[0] == "Winter service is reduced."
    of_image = [text for text in found if "iVBORw0KGgo" in text or "SUhEUg" in text]
    assert "".join(of_image) == image
    assert len(of_image) == math.ceil(len(image) / 120)


LINK = "https://example.org/tides/2027/spring/heights.html?port=north%20quay&unit=m#row-17"


@pytest.mark.parametrize("strategy", ["recursive", "sentence", "delimiter", "heading_aware", "json", "code"])
@pytest.mark.parametrize(
    "word",
    [
        f"![heights]({LINK})",
        f"[springs]({LINK}),",
        f'href="{LINK}">heights</a>',
        f"<{LINK}>",
        f"`curl={LINK}`",
        f"潮位は{LINK}をご覧ください",
        f"[{LINK}_(north)]".replace("#row", "(all)#row"),
        f"{LINK}|{LINK}",
    ],
)
def test_a_link_that_fits_stays_whole_in_a_word_that_does_not(word, strategy):
    link = LINK.replace("#row", "(all)#row") + "_(north)" if "(all)" in word else LINK
    text = f"The heights of the year: {word} as printed. All of them are in metres above the chart."
    chunker = get_chunker(strategy, chunk_size=len(link), chunk_overlap=0, tokenizer="character")
    found = chunker.chunk(Document("d", text))
    assert sum(link in chunk.text for chunk in found) == text.count(link)
    assert max(chunk.token_count for chunk in found) <= len(link)
    assert "".join("".join(chunk.text for chunk in found).split()) == "".join(text.split())


# ------------------------------------------------------------------------------------------------- own separators


def test_separators_replace_the_ladder():
    text = "a|b c|d e\n\nf"
    assert texts(text, 4, separators=["|"]) == ["a|", "b c|", "d e", "f"]
    assert texts("a, b. c, d. e", 6, separators=[". ", ", "]) == ["a, b.", "c, d.", "e"]


def test_a_separator_stays_with_the_piece_on_its_left():
    assert texts("aa==bb==cc", 4, separators=["=="]) == ["aa==", "bb==", "cc"]


def test_of_several_separators_of_a_level_the_longest_that_matches_counts():
    assert texts("aa;;;bb;cc", 5, separators=[[";", ";;;"]]) == ["aa;;;", "bb;cc"]
    assert texts("aa;;;bb;cc", 4, separators=[[";", ";;;"]]) == ["aa;;", ";", "bb;", "cc"]


def test_below_the_last_separator_clusters_are_cut():
    assert texts("abcdef|gh", 4, separators=["|"]) == ["abcd", "ef|", "gh"]
    assert texts("abcdef|gh", 4, separators=["|", "", "never"]) == ["abcd", "ef|", "gh"]
    assert texts("abcdef", 4, separators=[]) == ["abcd", "ef"]


def test_separators_end_where_the_empty_one_stands():
    with_end = get_chunker("recursive", separators=["\n", "", "x"])
    assert with_end.separators == (("\n",),)
    assert with_end.fingerprint() == get_chunker("recursive", separators=[["\n"]]).fingerprint()


@pytest.mark.parametrize("separators", ["\n", 3, [3], [[3]], [[]], {"a": 1}])
def test_separators_that_are_no_list_of_levels_are_refused(separators):
    with pytest.raises(ConfigError, match=r"^separators"):
        get_chunker("recursive", separators=separators)


# ---------------------------------------------------------------------------------------------------- last piece


def test_a_short_last_piece_is_glued_to_its_neighbour_if_both_fit():
    # The first paragraph is too large, so its sentences stand apart from the second paragraph.
    text = "Some words. More.\n\nOk."
    assert texts(text, 12) == ["Some words.", "More.", "Ok."]
    assert texts(text, 12, min_chunk_size=4) == ["Some words.", "More.\n\nOk."]


def test_a_short_last_piece_stands_alone_where_both_do_not_fit():
    assert texts("0123456789\n\nOk.", 12, min_chunk_size=5) == ["0123456789", "Ok."]


def test_a_last_piece_that_is_no_shorter_than_asked_stands_alone():
    assert texts("Some words. More.\n\nOk.", 12, min_chunk_size=3)[-2:] == ["More.", "Ok."]


# ------------------------------------------------------------------------------------------------------- overlap


def test_an_overlap_begins_with_a_sentence_where_one_is_in_reach():
    text = "One two three. Four five. Six seven eight. Nine ten."
    assert texts(text, 30, 12) == [
        "One two three. Four five.",
        "Four five. Six seven eight.",
        "seven eight. Nine ten.",  # the sentence is too long, so with a word
    ]


def test_else_with_a_word():
    assert texts("one two three four five six seven", 14, 6) == [
        "one two three",
        "three four",
        "four five six",
        "six seven",
    ]


def test_else_with_a_cluster():
    assert texts("0123456789abcdef", 8, 3) == ["01234567", "56789abc", "abcdef"]
    assert texts("👍🏽👍🏾👍🏿👍🏻", 4, 2) == ["👍🏽👍🏾", "👍🏾👍🏿", "👍🏿👍🏻"]


def test_an_overlap_is_never_larger_than_asked_and_never_chains():
    for text in (
        "one two three four five six seven eight nine ten " * 5,
        "0123456789" * 9,
        "A b. C d. E f. " * 9,
    ):
        for size, overlap in ((12, 5), (12, 11), (20, 3)):
            found = chunks(text, size, overlap)
            assert all(chunk.overlap <= overlap for chunk in found)
            # Taken from the new text of the chunk before: a third chunk never begins in the first.
            assert all(first.end <= third.start for first, third in zip(found, found[2:], strict=False))


def test_an_overlap_shrinks_to_nothing_where_the_next_piece_needs_the_budget():
    assert texts("aaa bbb\n\nccccc", 10, 5) == ["aaa bbb", "bbb\n\nccccc"]
    assert texts("aaa bbb\n\ncccccc", 10, 5) == ["aaa bbb", "bb\n\ncccccc"]
    assert texts("aaa bbb\n\ncccccccccc", 10, 5) == ["aaa bbb", "cccccccccc"]


def test_repeated_text_has_its_own_place():
    text = "tick tick tock tick tick tock tick"
    found = [(chunk.start, chunk.end) for chunk in chunks(text, 9, 4, separators=[" ", ""])]
    assert found == [(0, 9), (5, 14), (10, 19), (15, 24), (20, 29), (25, 34)]


# -------------------------------------------------------------------------------------------------------- blocks


def parts(*pieces):
    """A text of blocks with a blank line between them."""
    text, blocks = "", []
    for kind, content in pieces:
        text += "\n\n" if text else ""
        level = 1 if kind == "heading" else None
        blocks.append(Block(kind, len(text), len(text) + len(content), level=level))
        text += content
    return text, tuple(blocks)


TABLE = "| ab | cd |\n|----|----|\n| 11 | 22 |\n| 33 | 44 |"
CODE = "if a:\n    b. c\n\n    d\n\ne = 1"


@pytest.mark.parametrize(("kind", "content"), [("table", TABLE), ("code", CODE)])
def test_a_block_that_fits_is_never_cut(kind, content):
    text, blocks = parts(("paragraph", "Text before it."), (kind, content), ("paragraph", "Text after."))
    for size in range(len(content), len(text)):
        assert sum(content in chunk.text for chunk in chunks(text, size, blocks=blocks)) == 1


def test_a_table_is_cut_between_rows_and_a_row_between_cells():
    text, blocks = parts(("table", TABLE))
    assert texts(text, 24, blocks=blocks) == [TABLE[:23], TABLE[24:]]
    assert texts(text, 11, blocks=blocks) == TABLE.split("\n")
    assert texts(text, 7, blocks=blocks)[:2] == ["| ab |", "cd |"]


def test_code_is_cut_at_blank_lines_and_lines_and_keeps_its_indentation():
    text, blocks = parts(("code", CODE))
    assert texts(text, 16, blocks=blocks) == ["if a:\n    b. c", "    d\n\ne = 1"]
    assert texts(text, 10, blocks=blocks) == ["if a:", "    b. c", "    d", "e = 1"]


@pytest.mark.parametrize(
    ("kind", "content"), [("table", "| a. | b |"), ("code", "x = y. z"), ("heading", "Head. two")]
)
def test_no_overlap_reaches_across_a_heading_or_a_block_that_is_kept_whole(kind, content):
    text, blocks = parts(("paragraph", "One two. Three."), (kind, content), ("paragraph", "Four. Five."))
    for size in (14, 18, 26):
        for chunk in chunks(text, size, 8, blocks=blocks):
            if chunk.overlap:
                assert content not in text[chunk.start : chunk.start + chunk.overlap]
                assert not blocks[1].start <= chunk.start < blocks[1].end


def test_without_blocks_the_text_is_cut_as_it_stands():
    (chunk,) = chunks("# Not parsed\n\ntext", 30)
    assert (chunk.kind, chunk.heading_path, chunk.parent_id, chunk.strategy) == (
        "body",
        (),
        None,
        "recursive",
    )


# ------------------------------------------------------------------------------------------------------ settings


def test_defaults():
    chunker = get_chunker("recursive")
    assert (chunker.chunk_size, chunker.chunk_overlap, chunker.tokenizer) == (512, 0, "cl100k_base")
    assert (chunker.separators, chunker.min_chunk_size) == (None, 0)


@pytest.mark.parametrize("chunk_overlap", [9, 0.99])
def test_a_large_overlap_terminates(chunk_overlap):
    assert len(chunks("0123456789" * 5, 10, chunk_overlap)) <= 50


def test_min_chunk_size_is_refused_below_zero():
    with pytest.raises(ConfigError, match=r"^min_chunk_size=-1"):
        get_chunker("recursive", min_chunk_size=-1)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "character"])
def test_spellings_of_special_tokens_are_text(name):
    text = "Models stop at <|endoftext|> or <|im_start|>user<|im_end|>; others use [CLS] [SEP] or <s> </s> <unk>. End."
    joined = "".join(texts(text, 12, tokenizer=name))
    assert "".join(joined.split()) == "".join(text.split())
