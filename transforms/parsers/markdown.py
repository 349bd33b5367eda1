"""Markdown: CommonMark with tables, as top-level blocks that hold every character of the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from transforms.parsers.front_matter import read_front_matter
from transforms.records import Block, BlockKind, Span

if TYPE_CHECKING:
    from markdown_it.token import Token

    from transforms.parsers.commonmark import TopLevel

_LONGEST_INLINE = 1000
_KINDS: dict[str, BlockKind] = {
    "heading_open": "heading",
    "paragraph": "paragraph",
    "list_item_open": "list_item",
    "blockquote_open": "quote",
    "table": "table",
    "fence": "code",
    "code_block": "code",
    "hr": "other",
    "html_block": "other",
}
_NEWLINE = re.compile(r"\r\n?|\n")
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_MARKUP = re.compile(r"[\\`*_\]<&\n]")
_HTML = re.compile(" {0,3}<")
_HTML_TABLE = re.compile(r" {0,3}<table(?=[\s/>])", re.IGNORECASE)
_TABLE_TAG = re.compile(r"<(/?)table(?=[\s/>])", re.IGNORECASE)
_IMAGE = re.compile(r" *\[?!\[")
_DATA_URI = re.compile(r"""(?<=[(<"'=])data:[^\s<>()"']{100,}""", re.IGNORECASE)


def parse_markdown(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Top-level blocks of a Markdown text, and its front matter as `front_matter` where it has any.

    Headings are those of CommonMark outside every other block. A list gives a block for each of its items,
    and a paragraph of nothing but images is a `figure`. HTML that begins with `<table` is a table, up to its
    `</table>` if there is one before the next heading. A block begins with the indentation of its first line
    and ends before the newline of its last. Every character that is not white space is in one block: what is
    markup only, such as link definitions and front matter, is in blocks `other`.

    A heading of more than 1,000 characters, data URIs apart, has the first of them as title, markup and all;
    a paragraph as long is no figure.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
    """
    from transforms.parsers.commonmark import TopLevel, commonmark

    source = _NEWLINE.sub("\n", text) if "\r" in text else text
    state = TopLevel(source.replace("\0", "\ufffd"), commonmark())
    lines = _Lines(text, state)
    front_end, front_matter = read_front_matter(text)
    body = held = bisect_right(lines.starts, front_end) if front_end else 0
    state.md.block.tokenize(state, body, state.lineMax)

    blocks = [Block("other", *span) for span in [lines.span(0, body)] if span]
    for index, token in enumerate(state.tokens):
        if token.map and token.type in _KINDS:
            first, last = token.map
            blocks += lines.others(held, first)
            if span := lines.span(first, last):
                blocks.append(_block(text, span, state, index))
            held = last
    blocks += lines.others(held, len(lines.starts))
    if _TABLE_TAG.search(text):
        blocks = _join_tables(text, blocks)
    return tuple(blocks), {"front_matter": front_matter} if front_matter else {}


class _Lines:
    """The lines of a text, as CommonMark ends them."""

    def __init__(self, text: str, state: TopLevel) -> None:
        self.text = text
        # The parser changes its marks while it works, and its text has one character for CRLF.
        self.starts, self.ends = [*state.bMarks], [*state.eMarks]
        if "\r" in text:
            breaks = [found.span() for found in _NEWLINE.finditer(text)]
            self.starts = [0, *(end for _, end in breaks)]
            self.ends = [*(start for start, _ in breaks), len(text)]

    def is_blank(self, line: int) -> bool:
        start, end = self.starts[line], self.ends[line]
        return start == end or self.text[start:end].isspace()

    def span(self, first: int, last: int) -> Span | None:
        """Span of the lines [first, last) without the blank ones around; None if all are."""
        while first < last and self.is_blank(first):
            first += 1
        while first < last and self.is_blank(last - 1):
            last -= 1
        return (self.starts[first], self.ends[last - 1]) if first < last else None

    def others(self, first: int, last: int) -> Iterator[Block]:
        """A block for each run of lines in [first, last) that are not blank."""
        for is_blank, run in groupby(range(first, last), self.is_blank):
            if not is_blank:
                held = list(run)
                yield Block("other", self.starts[held[0]], self.ends[held[-1]])


def _join_tables(text: str, blocks: list[Block]) -> list[Block]:
    """The blocks with each HTML table as one of them, where CommonMark ends it at its first blank line."""
    joined: list[Block] = []
    # The table that is open: its place among the blocks, and how many tags are to be closed.
    opened = depth = 0
    for block in blocks:
        is_html = block.kind == "other" and _HTML.match(text, block.start)
        if block.kind == "heading":
            depth = 0
        elif is_html and depth:
            depth = max(0, depth + _open_tables(text, block))
            if not depth:
                block = _joined(joined[opened:], block)
                del joined[opened:]
        elif is_html and _HTML_TABLE.match(text, block.start):
            block = replace(block, kind="table")
            opened, depth = len(joined), max(0, _open_tables(text, block))
        joined.append(block)
    return joined


def _joined(parts: list[Block], last: Block) -> Block:
    images = tuple(image for part in parts for image in part.images)
    return Block("table", parts[0].start, last.end, images=images)


def _open_tables(text: str, block: Block) -> int:
    """How many tables a block opens more than it closes."""
    return sum(-1 if found[1] else 1 for found in _TABLE_TAG.finditer(text, block.start, block.end))


def _block(text: str, span: Span, state: TopLevel, index: int) -> Block:
    token = state.tokens[index]
    kind = _KINDS[token.type]
    if kind == "heading":
        return Block(kind, *span, int(token.tag[1:]), _title(state.tokens[index + 1].content, state))
    if kind == "paragraph" and _IMAGE.match(text, span[0]):
        images = _images(text[slice(*span)], state)
        if images is not None:
            return Block("figure", *span, images=images)
    if kind == "table":
        # The row of names and the line of dashes under it.
        return Block(kind, *span, attributes={"header_lines": "2"})
    if kind == "code" and (language := _language(token.info)):
        return Block(kind, *span, attributes={"language": language})
    return Block(kind, *span)


def _title(content: str, state: TopLevel) -> str:
    if _MARKUP.search(content):
        tokens = _inline(content, state)
        content = content[:_LONGEST_INLINE] if tokens is None else _plain(tokens)
    return _SPACES.sub(" ", content[:_LONGEST_INLINE]).strip()


def _images(content: str, state: TopLevel) -> tuple[str, ...] | None:
    """References of the images that `content` is made of; None if it is made of anything else."""
    tokens = _inline(content, state) or []
    images = [token for token in tokens if token.type == "image"]
    if not images or any(token.content.strip() for token in tokens if token.type != "image"):
        return None
    references = (str(token.attrs["src"]) for token in images)
    return tuple(reference for reference in references if not reference.lower().startswith("data:"))


def _inline(content: str, state: TopLevel) -> list[Token] | None:
    """Inline tokens of `content`; None if it is long: hostile text costs a thousand times what others do."""
    content = _DATA_URI.sub("data:", content)
    if len(content) > _LONGEST_INLINE:
        return None
    tokens: list[Token] = []
    state.md.inline.parse(content.strip(), state.md, state.env, tokens)
    return tokens


def _plain(tokens: list[Token]) -> str:
    return "".join(
        _plain(token.children or [])
        if token.type == "image"
        else " "
        if token.type.endswith("break")
        else token.content
        for token in tokens
        if token.type != "html_inline"
    )


def _language(info: str) -> str:
    from markdown_it.common.utils import unescapeAll

    return " ".join(unescapeAll(info).split()[:1])
