"""Position tags leave the text and become the locations of what they stand behind."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.parsers.position_tags import locate, take_tags
from transforms.records import Block, Document, Location

TAG = "@@1\t10.0\t200.0\t30.0\t42.0##"
PLACE = Location(1, (10.0, 30.0, 200.0, 42.0))
PIECES = [
    "a",
    "b c",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    "@@",
    "##",
    "\t",
    "1",
    "-",
    TAG,
    "@@2-3\t-1\t2\t3.5\t4##",
    "@@0\t1\t2\t3\t4##",
]
SOUP = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def take(text, blocks=()):
    clean, found = take_tags(text, blocks)
    Document("d", clean, blocks=found)
    return clean, [(block.kind, clean[block.start : block.end], block.locations) for block in found]


def test_tags_become_the_locations_of_the_lines_they_follow():
    text = (
        "Harbour rules apply to every boat.@@1\t10.0\t200.0\t30.0\t42.0##\n"
        "Report to the warden on arrival.@@1\t10.0\t200.0\t50.0\t62.0##\n"
        "This line runs over the page end.@@1-2\t10.0\t200.0\t780.0\t18.0##\n"
        "Write to @@ home ## or call 12@@7##.@@2\t10.0\t200.0\t40.0\t52.0##\n"
    )
    clean, blocks = take(text)
    lines = [
        "Harbour rules apply to every boat.",
        "Report to the warden on arrival.",
        "This line runs over the page end.",
        "Write to @@ home ## or call 12@@7##.",
    ]
    assert clean == "\n".join(lines) + "\n"
    assert blocks == [
        ("paragraph", lines[0], (Location(1, (10, 30, 200, 42)),)),
        ("paragraph", lines[1], (Location(1, (10, 50, 200, 62)),)),
        ("paragraph", lines[2], (Location(1, (10, 780, 200, 18)), Location(2, (10, 780, 200, 18)))),
        ("paragraph", lines[3], (Location(2, (10, 40, 200, 52)),)),
    ]


@pytest.mark.parametrize(
    ("tag", "locations"),
    [
        ("@@3\t1\t2\t3\t4##", [Location(3, (1, 3, 2, 4))]),
        ("@@3\t-1.5\t2.25\t-3\t-0.0##", [Location(3, (-1.5, -3, 2.25, 0))]),
        ("@@1-2-3\t1\t2\t3\t4##", [Location(page, (1, 3, 2, 4)) for page in (1, 2, 3)]),
        ("@@2-2\t1\t2\t3\t4##", [Location(2, (1, 3, 2, 4))]),
        ("@@1-999999999\t1\t2\t3\t4##", [Location(1, (1, 3, 2, 4)), Location(999_999_999, (1, 3, 2, 4))]),
    ],
)
def test_a_tag_has_pages_and_four_numbers_of_any_sign(tag, locations):
    assert take(f"x{tag}") == ("x", [("paragraph", "x", tuple(locations))])


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain", "12@@7##", "@@ home ##", "@@1 2 3 4 5##", "@@1\t2\t3\t4##", "@@1\t2\t3\t4\t5\t6##"),
        *(
            "@@1\t2\t3\t4\t5#",
            "@1\t2\t3\t4\t5##",
            "@@0\t1\t2\t3\t4##",
            "@@1-\t1\t2\t3\t4##",
            "@@-1\t1\t2\t3\t4##",
        ),
        *(
            "@@1\t1.\t2\t3\t4##",
            "@@1\t--1\t2\t3\t4##",
            "@@1\t1e3\t2\t3\t4##",
            "@@1\t" + "9" * 400 + "\t2\t3\t4##",
        ),
    ],
)
def test_what_only_looks_like_a_tag_stays(text):
    blocks = (Block("paragraph", 0, len(text)),) if text else ()
    assert take_tags(text, blocks) == (text, blocks)


def test_a_tag_locates_all_lines_since_the_one_before_or_a_blank_line():
    clean, blocks = take(f"not located\n \none\r\ntwo{TAG}\r\n three \n{TAG} four\n\n")
    assert clean == "not located\n \none\r\ntwo\r\n three \n four\n\n"
    assert blocks == [("paragraph", "one\r\ntwo", (PLACE,)), ("paragraph", "three", (PLACE,))]


def test_several_tags_in_a_row_locate_one_text():
    other = "@@2\t1\t2\t3\t4##"
    assert take(f"text{TAG}{other}\n\n{TAG}") == (
        "text\n\n",
        [("paragraph", "text", (PLACE, Location(2, (1, 3, 2, 4))))],
    )


def test_a_tag_before_any_text_locates_nothing():
    assert take(f" {TAG}\ntext") == (" \ntext", [])


def test_blocks_move_with_their_text_and_gain_the_locations():
    text = f"# Title{TAG}\n\nOne.{TAG} Two.@@2\t1\t2\t3\t4##\n\nThree.{TAG}\n\nFour."
    third = text.index("Four")
    blocks = (
        Block("heading", 0, text.index("\n"), 1, "Title"),
        Block("quote", text.index("One"), text.index("\n\nThree"), locations=(Location(9),)),
        Block("code", third, len(text)),
    )
    assert take(text, blocks) == (
        "# Title\n\nOne. Two.\n\nThree.\n\nFour.",
        [
            ("heading", "# Title", (PLACE,)),
            ("quote", "One. Two.", (Location(9), PLACE, Location(2, (1, 3, 2, 4)))),
            ("paragraph", "Three.", (PLACE,)),
            ("code", "Four.", ()),
        ],
    )


def test_a_tag_behind_its_block_belongs_to_it():
    text = f"One.{TAG}\nTwo.{TAG}"
    two = text.index("Two")
    assert take(text, (Block("list_item", 0, 4), Block("list_item", two, two + 4)))[1] == [
        ("list_item", "One.", (PLACE,)),
        ("list_item", "Two.", (PLACE,)),
    ]


def test_a_block_of_nothing_but_a_tag_is_gone():
    text = f"One.\n{TAG}\nTwo."
    blocks = (Block("other", 0, 4), Block("other", 5, 5 + len(TAG)), Block("other", len(text) - 4, len(text)))
    assert take(text, blocks)[1] == [("other", "One.", (PLACE,)), ("other", "Two.", ())]


def test_blocks_found_later_are_located_too():
    clean, located = take_tags(f"# Title{TAG}\n\nBody.\n")
    assert clean == "# Title\n\nBody.\n"
    heading, body = Block("heading", 0, 7, 1, "Title"), Block("paragraph", 9, 14)
    assert [block.locations for block in locate((heading, body), located)] == [(PLACE,), ()]


@given(SOUP, st.lists(st.integers(0, 200), max_size=8, unique=True))
def test_nothing_but_tags_is_removed_and_blocks_keep_their_text(text, edges):
    tag = re.compile(r"@@(1|2-3)\t[-0-9.\t]+##")
    edges = sorted(edge for edge in edges if edge <= len(text))
    blocks = tuple(map(Block, ["other"] * len(edges), edges[::2], edges[1::2]))
    clean, found = take_tags(text, blocks)
    assert clean == tag.sub("", text)
    Document("d", clean, blocks=found)
    inside = [span for match in tag.finditer(text) for span in range(match.start() + 1, match.end())]
    if not set(inside) & set(edges):
        kept = [tag.sub("", text[block.start : block.end]) for block in blocks]
        others = [clean[block.start : block.end] for block in found if block.kind == "other"]
        assert others == ([part for part in kept if part.strip()] if clean != text else kept)
    assert all(
        block.locations and clean[block.start : block.end].strip() for block in found if block.kind != "other"
    )


@pytest.mark.parametrize(
    "piece", ["@@", TAG, "@@1-", "@@1\t1", "a\n\n", "\n" + TAG, "a" + TAG, "@@" + "1-" * 50]
)
def test_hostile_text_is_read_in_linear_time(piece):
    text = piece * 30_000 + TAG
    clean, _ = take_tags(text)
    assert clean == text.replace(TAG, "")
