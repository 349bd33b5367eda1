"""Markdown: CommonMark with tables, as top-level blocks that hold every character of the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from transforms.parsers.front_matter import read_front_matter
from transforms.records import Block, Span

if TYPE_CHECKING:
    from transforms.parsers.commonmark import MarkdownBlock

_NEWLINE = re.compile(r"\r\n?|\n")
_DEFINITION = re.compile(r" {0,3}\[")
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\Z")
# cmark leaves out the last line of HTML that ends with a mark of its own, such as a comment, also inside these.
_SHORT = frozenset({"other", "quote", "list_item"})
_HTML = re.compile(" {0,3}<")
_HTML_TABLE = re.compile(r" {0,3}<table(?=[\s/>])", re.IGNORECASE)
_TABLE_TAG = re.compile(r"<(/?)table(?=[\s/>])", re.IGNORECASE)


def parse_markdown(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Top-level blocks of a Markdown text, and its front matter as `front_matter` where it has any.

    Headings are those of CommonMark outside every other block. A list gives a block for each of its items, or for
    the parts of an item between the code and the tables in it, which are blocks too. A paragraph of nothing but
    images is a `figure`. HTML that begins with `<table` is a table, up to its `</table>` if there is one before the
    next heading. A block begins with the indentation of its first line and ends before the newline of its last.
    Every character that is not white space is in one block: what is markup only, such as link definitions and front
    matter, is in blocks `other`.

    The title of a heading is its text without markup, or the first 1,000 characters of that.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
    """
    from transforms.parsers.commonmark import top_level

    lines = _Lines(text)
    front_end, front_matter = read_front_matter(text)
    body = held = bisect_right(lines.starts, front_end) if front_end else 0
    blocks = [Block("other", *span) for span in [lines.span(0, body)] if span]
    found = list(top_level(text[lines.starts[body] :] if body < len(lines.starts) else ""))
    ends = [*(body + block.first for block in found[1:]), len(lines.starts)]
    for block, end in zip(found, ends, strict=False):
        first, last = body + block.first, min(body + block.last, end)
        if block.kind == "heading":
            # An underlined one ends, cmark says, with the line after it, if there is one.
            last -= last - first > 1 and not lines.is_underline(last - 1)
        elif last < end and block.kind in _SHORT:
            last += lines.is_text(last)
        if held < first:
            blocks += lines.others(held, first)
        if span := lines.span(first, last):
            blocks.append(_block(span, block))
        held = last
    blocks += lines.others(held, len(lines.starts))
    if _TABLE_TAG.search(text):
        blocks = _join_tables(text, blocks)
    return tuple(blocks), {"front_matter": front_matter} if front_matter else {}


class _Lines:
    """The lines of a text, as CommonMark ends them."""

    def __init__(self, text: str) -> None:
        self.text = text
        if "\r" in text:
            breaks = [found.span() for found in _NEWLINE.finditer(text)]
            self.starts = [0, *(end for _, end in breaks)]
            self.ends = [*(start for start, _ in breaks), len(text)]
            lines = [text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]
        else:
            lines = text.split("\n")
            self.starts = list(accumulate([len(line) + 1 for line in lines], initial=0))
            self.ends = [start - 1 for start in self.starts[1:]]
            self.starts.pop()
        self.is_blank = [not line or line.isspace() for line in lines]

    def is_text(self, line: int) -> bool:
        """Whether a line is not blank, and defines no link."""
        return not self.is_blank[line] and not _DEFINITION.match(self.text, self.starts[line])

    def is_underline(self, line: int) -> bool:
        return bool(_UNDERLINE.match(self.text, self.starts[line], self.ends[line]))

    def span(self, first: int, last: int) -> Span | None:
        """Span of the lines [first, last) without the blank ones around; None if all are."""
        is_blank = self.is_blank
        while first < last and is_blank[first]:
            first += 1
        while first < last and is_blank[last - 1]:
            last -= 1
        return (self.starts[first], self.ends[last - 1]) if first < last else None

    def others(self, first: int, last: int) -> Iterator[Block]:
        """A block for each run of lines in [first, last) that are not blank."""
        if all(self.is_blank[first:last]):
            return
        for is_blank, run in groupby(range(first, last), self.is_blank.__getitem__):
            if not is_blank:
                held = list(run)
                yield Block("other", self.starts[held[0]], self.ends[held[-1]])


def _block(span: Span, block: MarkdownBlock) -> Block:
    if block.kind == "heading":
        title = _SPACES.sub(" ", block.title or "").strip()
        return Block("heading", *span, block.level, title)
    if block.images is not None:
        return Block("figure", *span, images=block.images)
    if block.kind == "table":
        # The row of names and the line of dashes under it.
        return Block("table", *span, attributes={"header_lines": "2"})
    if block.language:
        return Block(block.kind, *span, attributes={"language": block.language})
    return Block(block.kind, *span)


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
