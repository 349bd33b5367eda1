"""Markdown becomes blocks that hold every character once, with CommonMark's headings, however hostile."""

from __future__ import annotations

import re
import sys

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from soups import soup

from transforms.parsers.commonmark import top_level
from transforms.parsers.markdown import parse_markdown
from transforms.records import Document

PIECES = (
    "# ;## ;###;a;b c;é;中文;> ;>;- ;* ;1. ;2) ;```;~~~;    ;  ; ;\t;\n;\n;\n;\n\n;---;===;***;<!--;-->;"
    "<div>;</div>;<?;<script>;[x]: /u;'t';\"t;[;];![i](d);\\;`;&amp;|;|a|b|;|-|-|;|;\x0c;\u2028;\xa0;"
    "title: t;...;+++"
)
SOUP = soup([*PIECES.split(";"), "x\n|a|b|\n|-|-|\n", "|a|b|\n|-|-|\n|c|\n"])
PLAINER_SOUP = soup(PIECES.split(";"))
# What the two differ on: odd white space, a row of one pipe, and what stands right below the definition of a link.
DIFFERS = re.compile(r"[\f\u2028\xa0]|^[^a-z|]*\|[ \t]*$|\]:.*(\||\n.)", re.MULTILINE)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])


def blocks_of(text):
    blocks, _ = parse_markdown(text)
    Document("d", text, blocks=blocks)
    held = 0
    for block in blocks:
        assert not text[held : block.start].strip(), "text between blocks"
        lines = re.split("[\r\n]", text[block.start : block.end])
        assert lines[0].strip(), "blank line before a block"
        assert lines[-1].strip(), "blank line after a block"
        held = block.end
    assert not text[held:].strip(), "text after the last block"
    return blocks


def pieces(text):
    return [(block.kind, text[block.start : block.end]) for block in blocks_of(text)]


def outline(text):
    """Level, title and line of each heading."""
    return [
        (block.level, block.title, len(re.split("\r\n|\r|\n", text[: block.start])))
        for block in blocks_of(text)
        if block.kind == "heading"
    ]


def headings(text):
    return [heading[:2] for heading in outline(text)]


def title(text):
    (block,) = blocks_of(text)
    return block.title


class TestHeadings:
    def test_hash_lines_in_code_are_no_headings(self):
        text = (
            "# Setup\n\n```sh\n# comment\n```\n\n~~~\n## tilde\n``` not its end\n~~~\n\n"
            "````md\n```py\n# inner\n```\n# outer\n````\n\n"
            "1. Step:\n\n    ```sh\n    # in a list\n    ```\n\n"
            "``` not closed by this\n# inside\n```\n\n    # indented\n\n   ### Three spaces\n\n## Last\n"
        )
        assert outline(text) == [(1, "Setup", 1), (3, "Three spaces", 31), (2, "Last", 33)]

    def test_an_unclosed_fence_runs_to_the_end(self):
        assert headings("# A\n\n```\n# b\n\n# c\n") == [(1, "A")]

    def test_hash_lines_in_comments_and_html_are_no_headings(self):
        text = (
            "# Guide\n\n<!-- TODO\n# Old\n\nDraft\n===\n-->\n\n## Setup <!-- in March -->\n\nText.\n\n"
            "<!-- one --> \n\n### Details\n\n<div>\n## raw\n</div>\n\n## After\n"
        )
        assert outline(text) == [(1, "Guide", 1), (2, "Setup", 10), (3, "Details", 16), (2, "After", 22)]

    def test_skipped_levels_stay_as_written(self):
        text = "# A\n\n### A.x\n\nx\n\n#### A.x.y\n\n## A.b\n\n#### A.b.deep\n\n# B\n\n##### B.five\n"
        assert headings(text) == [
            (1, "A"),
            (3, "A.x"),
            (4, "A.x.y"),
            (2, "A.b"),
            (4, "A.b.deep"),
            (1, "B"),
            (5, "B.five"),
        ]

    def test_headings_without_a_body_and_text_before_them_are_all_there(self):
        text = "A first draft.\n\n# Agenda\n\n# Actions\n\n## Owners\n"
        assert pieces(text) == [
            ("paragraph", "A first draft."),
            ("heading", "# Agenda"),
            ("heading", "# Actions"),
            ("heading", "## Owners"),
        ]

    def test_white_space_inside_blocks_stays(self):
        text = (
            "# Build\n\n```make\nall:\n\tcc -o app main.c\n```\n\nPrice: 12\xa0000\xa0kr\n\n"
            "- outer\n    - inner\n        - deep\n"
        )
        assert pieces(text) == [
            ("heading", "# Build"),
            ("code", "```make\nall:\n\tcc -o app main.c\n```"),
            ("paragraph", "Price: 12\xa0000\xa0kr"),
            ("list_item", "- outer\n    - inner\n        - deep"),
        ]

    @pytest.mark.parametrize(
        "text",
        [
            "# One\nbody\n\n## Two\nbody\n",
            "# One\r\nbody\r\n\r\n## Two\r\nbody\r\n",
            "# One\rbody\r\r## Two\rbody\r",
            "# One\r\nbody\rmore\n## Two\nend",
            "One\r\n===\r\n\r\nTwo\r---\r",
        ],
    )
    def test_lines_end_in_any_of_three_ways(self, text):
        assert outline(text) == [(1, "One", 1), (2, "Two", 4)]

    def test_other_line_separators_end_no_line(self):
        assert headings("a\u2028# b\x0c# c\x0b# d\x85# e\n") == []

    @pytest.mark.parametrize("text", ["- # a\n- b\n  # c", "> # a\n> b\n> ===", "1. a\n   ---"])
    def test_a_heading_in_a_list_or_quote_begins_no_section(self, text):
        assert headings(text) == []

    def test_setext_headings_may_span_lines(self):
        text = "One *long*\n  title\n===\nText\n---\n- item\n---\n"
        assert outline(text) == [(1, "One long title", 1), (2, "Text", 4)]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("# `fs.read(a, *b*)`", "fs.read(a, *b*)"),
            ("## *a* __b__ [c](http://d 'e') <f@g.de> ![alt *x*](y.png)", "a b c f@g.de alt x"),
            (r"# 1\. \*not\* R&amp;D &copy; &#x41;", "1. *not* R&D © A"),
            ('# <a id="x"></a>Name <!-- c -->', "Name"),
            ("# closed ## #", "closed ##"),
            ("# shut ##", "shut"),
            ("#", ""),
            ("#\ttab\t#", "tab"),
            ("# a  b\\\n", "a b\\"),
            ("# \0", "\ufffd"),
            ("# [" * 3, "[# [# ["),
            ("# ![i](data:image/png;base64," + "A" * 5000 + ")z", "iz"),
            ("# [j](javascript:x) ü", "j ü"),
            ("# " + "*a* " * 900, ("a " * 500).strip()),
        ],
    )
    def test_a_title_is_what_a_reader_would_see(self, text, expected):
        assert title(text) == expected

    def test_references_in_titles_are_resolved(self):
        assert headings("# [A][x] [b]\n\n[x]: /u\n") == [(1, "A [b]")]

    def test_hash_without_space_and_seven_hashes_are_text(self):
        assert pieces("#a\n####### b") == [("paragraph", "#a\n####### b")]


class TestBlocks:
    def test_every_kind_has_its_span(self):
        text = (
            "\n \n   Lead\ntext  \n\n> quote\nlazy\n\n* a\n\n  more\n* b\n  - c\n\n+ d\n\n"
            "|h|i|\n|-|-|\n|1|2|\n\n    code\n\n\n    code\n\n---\n<p>\nx\n</p>\n\n"
            "[x]: /u\n[y]: /v\n\n[z]: /w\n\n![i](i.png)\n \n"
        )
        assert pieces(text) == [
            ("paragraph", "   Lead\ntext  "),
            ("quote", "> quote\nlazy"),
            ("list_item", "* a\n\n  more"),
            ("list_item", "* b\n  - c"),
            ("list_item", "+ d"),
            ("table", "|h|i|\n|-|-|\n|1|2|"),
            ("code", "    code\n\n\n    code"),
            ("other", "---"),
            ("other", "<p>\nx\n</p>"),
            ("other", "[x]: /u\n[y]: /v"),
            ("other", "[z]: /w"),
            ("figure", "![i](i.png)"),
        ]

    def test_code_and_tables_in_an_item_are_blocks_between_its_parts(self):
        text = (
            "1. Step:\n\n   ```sh\n   run\n   ```\n\n   then\n2. See\n   |a|b|\n   |-|-|\n   |1|2|\n"
            "   - deeper\n\n         code\n- ```\n  x\n  ```\n> - ```\n>   quoted\n"
        )
        assert pieces(text) == [
            ("list_item", "1. Step:"),
            ("code", "   ```sh\n   run\n   ```"),
            ("list_item", "   then"),
            ("list_item", "2. See"),
            ("table", "   |a|b|\n   |-|-|\n   |1|2|"),
            ("list_item", "   - deeper"),
            ("code", "         code"),
            ("code", "- ```\n  x\n  ```"),
            ("quote", "> - ```\n>   quoted"),
        ]

    def test_code_knows_its_language_and_a_table_its_header(self):
        blocks = blocks_of("```C\\+\\+ linenos\n```\n\n~~~\n~~~\n\n    x\n\na|b\n-|-\n")
        assert [dict(block.attributes) for block in blocks] == [
            {"language": "C++"},
            {},
            {},
            {"header_lines": "2"},
        ]

    @pytest.mark.parametrize(
        ("text", "kind", "images"),
        [
            ("![a](b.png)", "figure", ("b.png",)),
            ("![a] [b](c)", "paragraph", ()),
            ("[![a](b)](c)\n![d](<e f> 'g')", "figure", ("b", "e f")),
            ("![a][r]\n\n[r]: s.png", "figure", ("s.png",)),
            ("![a](data:image/png;base64," + "A" * 9999 + ")", "figure", ()),
            ("![a](DATA:,x)", "figure", ()),
            ("![a](b) and text", "paragraph", ()),
            ("[a](b)", "paragraph", ()),
            ("![a](b) `c`", "paragraph", ()),
        ],
    )
    def test_a_paragraph_of_images_only_is_a_figure(self, text, kind, images):
        block = blocks_of(text)[0]
        assert (block.kind, block.images) == (kind, images)

    def test_a_table_begins_with_its_header_whatever_is_right_before_it(self):
        text = "[x]: /u\ntext\nmore\n|a|b|\n|-|-|\n|1|2|\n> q\n\nend\na|b\n-|-\n\n- i\n\na|b\n-|-\n"
        assert [(kind, piece.count("\n")) for kind, piece in pieces(text)] == [
            ("paragraph", 2),
            ("table", 2),
            ("quote", 0),
            ("paragraph", 0),
            ("table", 1),
            ("list_item", 0),
            ("table", 1),
        ]

    @pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\xa0\n\n\u2003", "\x0c"])
    def test_a_blank_text_has_no_blocks(self, text):
        assert blocks_of(text) == ()


class TestFrontMatter:
    def test_yaml_becomes_metadata_and_holds_no_headings(self):
        text = "---\ntitle: T\n# comment\n\ntags: [a, 1, 2.5, true, null]\ndate: 2024-05-06\n...\n# H\n"
        blocks, metadata = parse_markdown(text)
        assert metadata == {
            "front_matter": {"title": "T", "tags": ["a", 1, 2.5, True, None], "date": "2024-05-06"}
        }
        assert [block.kind for block in blocks] == ["other", "heading"]
        assert text[blocks[0].start : blocks[0].end].endswith("...")

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_it_ends_its_lines_in_any_way(self, newline):
        text = newline.join(["--- ", "a: 1", "---\t", "# H"])
        assert parse_markdown(text)[1] == {"front_matter": {"a": 1}}
        assert outline(text) == [(1, "H", 4)]

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
    def test_toml_becomes_metadata(self):
        _, metadata = parse_markdown("+++\ntitle = 'T'\nat = 07:30:00\n+++\n# H")
        assert metadata == {"front_matter": {"title": "T", "at": "07:30:00"}}

    @pytest.mark.parametrize(
        "source",
        [
            "a: b: c",
            "just text",
            "- a\n- b",
            "a: &x [1]\nb: *x",
            "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]",
            "a: !!python/object/apply:os.system [ls]",
            "a: !!binary aGk=",
            "a: !!bool maybe",
            "a: !!timestamp maybe",
            "a: .inf",
            "a: " + "9" * 30,
            "a: 0x" + "f" * 9999,
            "a: " + "[" * 9999,
            "a: " + "[" * 99 + "]" * 99,
            "a: " + "b" * 70_000,
            "\ta: 1",
            "a: \x01",
        ],
    )
    def test_what_cannot_be_read_stays_a_block(self, source):
        text = f"---\n{source}\n---\n# H"
        assert parse_markdown(text)[1] == {}
        assert [block.kind for block in blocks_of(text)] == ["other", "heading"]

    def test_keys_are_strings_and_strings_are_unicode(self, monkeypatch):
        monkeypatch.delattr(yaml, "CSafeLoader")  # It knows no escaped surrogates.
        _, metadata = parse_markdown('---\n1: a\n2024-01-02: "\\ud800"\n---\n')
        assert metadata == {"front_matter": {"1": "a", "2024-01-02": "\ufffd"}}

    @pytest.mark.parametrize(
        "text", ["---\n\n# H\n\n---\n", "---\na: 1\n# H", " ---\na: 1\n---\n# H", "x\n\n---\na: 1\n---"]
    )
    def test_a_thematic_break_is_no_front_matter(self, text):
        assert parse_markdown(text)[1] == {}
        assert headings(text)


class TestLaws:
    @given(SOUP, NEWLINES)
    def test_blocks_hold_every_character_of_markdown(self, text, newline):
        blocks_of(text.replace("\n", newline))

    @given(st.text(st.characters(), max_size=200))
    def test_blocks_hold_every_character_of_any_script(self, text):
        blocks_of(text)

    @given(SOUP)
    def test_blocks_do_not_depend_on_how_lines_end(self, text):
        unix, dos = blocks_of(text), blocks_of(text.replace("\n", "\r\n"))
        assert [block.kind for block in unix] == [block.kind for block in dos]
        assert [block.title for block in unix] == [block.title for block in dos]

    @given(PLAINER_SOUP)
    def test_blocks_are_those_of_markdown_it(self, text):
        assume(not DIFFERS.search(text))
        found = [(kind, first, (facts or {}).get("level")) for kind, first, _, facts in top_level(text)]
        items, others = oracle(text)
        assert [block for block in found if block[0] != "list_item"] == others
        assert {first for _, first, _ in found} >= items


KINDS = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "blockquote_open": "quote",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "hr": "other",
    "html_block": "other",
}


def oracle(text):
    """What another parser finds: the first lines of the items, and kind, first line and level of other blocks."""
    tokens = []
    stock = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    stock.block.parse(text, stock, {}, tokens)
    items, others, quotes = set(), [], 0
    for token in tokens:
        kind = KINDS.get(token.type)
        if token.type == "list_item_open" and token.level == 1:
            items.add(token.map[0])
        elif kind and (token.level == 0 or (kind in ("code", "table") and not quotes)):
            others.append((kind, token.map[0], int(token.tag[1:]) if kind == "heading" else None))
        quotes += token.nesting if token.type.startswith("blockquote") else 0
    return items, others


class TestHostileText:
    @pytest.mark.parametrize("nested", ["> ", "- ", "1. ", "> - "])
    @pytest.mark.parametrize("depth", [9, 11, 19, 21, 10_000])
    def test_what_follows_deep_nesting_is_not_lost(self, nested, depth):
        assert headings(f"{nested * depth}a\n\n# H\n") == [(1, "H")]
        assert headings(f"{nested * depth}a\n# H\n") == [(1, "H")]

    def test_items_after_a_deep_list_are_items(self):
        deep = "".join(f"{'  ' * depth}- a\n" for depth in range(60))
        assert [kind for kind, _ in pieces(deep + "- b\n- c\n")].count("list_item") == 3

    @pytest.mark.parametrize(
        "text",
        [
            "# a\n" * 100_000,
            "\n" * 200_000 + "a",
            "word " * 1_000_000,
            "[" * 1_000_000,
            "`" * 1_000_000,
            "# " + "[" * 1_000_000,
            "![a](" * 200_000,
            "\t" * 1_000_000 + "a",
            "|" * 500_000 + "\n" + "|-" * 250_000,
            "<" * 1_000_000,
            "<!--" * 250_000,
            "---\n" + "a: b\n" * 100_000 + "---\n",
            "---\n" + "- - " * 15_000 + "\n---\n",
        ],
        ids=lambda text: repr(text[:8]),
    )
    def test_a_large_text_is_parsed_whole(self, text):
        assert blocks_of(text)

    @pytest.mark.parametrize(
        "unit",
        [
            "# a\n",
            "a\n\n",
            "a\n",
            "\n",
            "-\n",
            "- a\nb\n",
            "- ```\n  a\nb\n",
            ">\n",
            "> # a\nb\n",
            "> ```\n    x\n",
            "> > # a\n> b\n",
            "> - # a\nb\n",
            "- > # a\nb\n",
            "1. > ```\n       x\n",
            "|a|\n|-|\n",
            "x\na|b\n-|-\n\n",
            "a|b\n-|-\n|\n",
            "[a]: b\n",
            "[a]: b (x\n",
            "[a]: b '\n[a]: b \"\n",
            "[a\n",
            "<a b\n",
            "<!--\n",
            "    a\n\n\n",
            "``` `\n",
            "![a](b)\n\n",
            "# [a](![b](\n",
            "> > > > > > > > > a\na\na\na\na\na\na\n",
        ],
        ids=repr,
    )
    def test_cost_grows_linearly(self, unit):
        small, large = cost(unit * 150), cost(unit * 600)
        assert large < 5 * small


def cost(text):
    """Calls of functions, Python's and C's, that a parse takes: the same on a busy machine."""
    parse_markdown("# *warm*")
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse_markdown(text)
    finally:
        sys.setprofile(before)
    return calls
