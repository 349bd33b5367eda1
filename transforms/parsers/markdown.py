"""Markdown: CommonMark with tables, as top-level blocks that hold every character of the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from transforms.parsers.front_matter import read_front_matter
from transforms.parsers.lines import line_feeds
from transforms.records import Block, BlockKind, Span

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
    starts, ends = lines.starts, lines.ends
    front_end, front_matter = read_front_matter(text)
    held = bisect_right(starts, front_end) if front_end else 0
    blocks = [Block("other", *span) for span in [lines.span(0, held)] if span]
    found = top_level(text[starts[held] :], held) if held < len(starts) else []
    firsts = [*(first for _, first, _, _ in found), len(starts)]
    for (kind, first, last, facts), end in zip(found, firsts[1:], strict=True):
        if kind == "heading":
            # An underlined one ends, cmark says, with the line after it, if there is one.
            last = min(last, end)
            last -= last - first > 1 and not lines.is_underline(last - 1)
        elif last >= end:
            last = end
        elif kind in _SHORT:
            last += lines.is_text(last)
        # Most often there are only empty lines between, each no more than its line break.
        if held < first and starts[first] - starts[held] != first - held:
            blocks += lines.others(held, first)
        held = last
        if first < last:
            start, stop = starts[first], ends[last - 1]
            if start == stop or text[start].isspace() or text[stop - 1].isspace():
                span = lines.span(first, last)
                if not span:
                    continue
                start, stop = span
            blocks.append(_block(kind, start, stop, facts) if facts else Block(kind, start, stop))
    blocks += lines.others(held, len(starts))
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
        else:
            feeds = line_feeds(text)
            self.starts = [0, *(feeds + 1).tolist()]
            self.ends = [*feeds.tolist(), len(text)]

    def is_blank(self, first: int, last: int) -> bool:
        """Whether the lines [first, last) are all blank."""
        held = self.text[self.starts[first] : self.ends[last - 1]] if first < last else ""
        return not held or held.isspace()

    def is_text(self, line: int) -> bool:
        """Whether a line is not blank, and defines no link."""
        start, end = self.starts[line], self.ends[line]
        return start < end and not self.text[start:end].isspace() and not _DEFINITION.match(self.text, start)

    def is_underline(self, line: int) -> bool:
        return bool(_UNDERLINE.match(self.text, self.starts[line], self.ends[line]))

    def span(self, first: int, last: int) -> Span | None:
        """Span of the lines [first, last) without the blank ones around; None if all are."""
        while first < last and self.is_blank(first, first + 1):
            first += 1
        while first < last and self.is_blank(last - 1, last):
            last -= 1
        return (self.starts[first], self.ends[last - 1]) if first < last else None

    def others(self, first: int, last: int) -> Iterator[Block]:
        """A block for each run of lines in [first, last) that are not blank."""
        if self.is_blank(first, last):
            return
        for is_blank, run in groupby(range(first, last), lambda line: self.is_blank(line, line + 1)):
            if not is_blank:
                held = list(run)
                yield Block("other", self.starts[held[0]], self.ends[held[-1]])


def _block(kind: BlockKind, start: int, end: int, facts: Mapping[str, Any]) -> Block:
    if kind == "heading":
        title: str = facts["title"]
        if "  " in title or not title.isprintable():
            title = _SPACES.sub(" ", title)
        return Block(kind, start, end, facts["level"], title.strip())
    if kind == "paragraph":
        return Block("figure", start, end, images=facts["images"])
    return Block(kind, start, end, attributes=facts)


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
