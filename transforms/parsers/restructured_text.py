"""reStructuredText: section titles, literal blocks, tables and paragraphs, as blocks that hold every character."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from transforms.parsers.drawn_tables import GRID_BORDER, SIMPLE_BORDER
from transforms.parsers.restructured_lines import lines_of
from transforms.parsers.restructured_titles import ENOUGH
from transforms.records import Block, BlockKind

_MARKS = frozenset(string.punctuation)
_EXPLICIT = re.compile(r"\.\.(?:[ \t]|$)")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([A-Za-z0-9][\w.+:-]*?)[ \t]?::(?:[ \t]+(.*)|$)")
_CODE = frozenset(
    "code code-block sourcecode parsed-literal literalinclude doctest testcode testoutput prompt ipython "
    "productionlist graphviz".split()
)
_TABLES = frozenset("table list-table flat-table csv-table".split())
_FIGURES = frozenset("figure image kernel-figure kernel-image".split())
# What these hold is text like any other.
_CONTAINERS = frozenset(
    "note warning tip hint important caution danger attention error admonition seealso deprecated versionadded "
    "versionchanged topic sidebar container only compound rubric epigraph highlights pull-quote tab tab-set dropdown "
    "class function method data attribute exception module option envvar describe".split()
)


def parse_restructured_text(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Blocks of a reStructuredText, and its title as `front_matter` if one title stands above all others.

    A heading is a line with a line of one punctuation mark under it, or one above it too; each such style is a level,
    in the order in which they are first used. What follows `::` and is indented is code, and so are directives that
    hold code, with all that belongs to them. Grid tables, simple tables and directives that make one are tables.
    Directives that hold text, such as notes, are read like text; of any other, and of a comment, all is one block
    `other`. What blank lines part besides is a paragraph, or a list item if it begins as one. Nothing is included
    from other files.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
    """
    blocks = tuple(_Reader(text).read())
    title = _title_of_all(blocks)
    return blocks, {"front_matter": {"title": title}} if title else {}


class _Reader:
    """The blocks of a reStructuredText, read line by line.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        if "\r" in text:
            # A line break of two characters stays as long as it was, for lengths tell where a line is.
            text = text.replace("\r\n", " \n").replace("\r", "\n")
        self._lines = lines_of(text)
        # A line that made those before it no code, for it lacks their mark, and the least that they are indented by:
        # not to look for it again from each of them.
        self._unmarked = 0, 0

    @cached_property
    def _borders(self) -> dict[int, list[int]]:
        """Borders of simple tables, by how far they are indented: a table in a cell is by more."""
        borders: dict[int, list[int]] = {}
        for place in self._lines.beginning_with("="):
            if SIMPLE_BORDER.fullmatch(self._lines.text(place)):
                borders.setdefault(self._lines.indent(place), []).append(place)
        return borders

    def read(self) -> list[Block]:
        """All blocks, in order."""
        blocks: list[Block] = []
        lines, at = self._lines, 0
        # The last line is blank, and what stands before it ends by then.
        while (at := lines.add_plain(at, blocks)) < lines.last:
            at = self._add(at, blocks)
        return blocks

    def _add(self, at: int, blocks: list[Block]) -> int:
        """Add the block that begins with a line, which `add_plain` left out; the line after it."""
        lines = self._lines
        if lines.before_code >= 0:
            lines.before_code = -1
            if after := self._quoted(at):
                blocks.append(self._block("code", at, after))
                return after
            if after := lines.add_heading(at, blocks):
                return after
        text = lines.text(at)
        mark = text[0]
        if mark == "." and _EXPLICIT.match(text):
            block, after = self._explicit(at, text)
        elif after := self._grid(at) if mark == "+" else self._simple(at) if mark == "=" else 0:
            block = self._block("table", at, after)
        elif len(text) >= ENOUGH and lines.is_adornment(at):
            after = at + 1
            block = self._block("other", at, after)
        elif text.startswith(">>> "):
            after = lines.group(at, lines.indent(at))
            block = self._block("code", at, after)
        else:
            return lines.add_text(at, blocks)
        blocks.append(block)
        return after

    def _block(self, kind: BlockKind, at: int, after: int) -> Block:
        return Block(kind, *self._lines.span(at, after))

    def _quoted(self, at: int) -> int:
        """The line after code that follows `::` with one punctuation mark before each line; 0 if there is none."""
        lines = self._lines
        mark, indent = lines.text(at)[0], lines.indent(at)
        unmarked, unmarked_in = self._unmarked
        if mark not in _MARKS or (at < unmarked and indent <= unmarked_in):
            return 0
        after = at + 1
        while (text := lines.text(after)) and lines.indent(after) >= indent:
            if not text.startswith(mark):
                self._unmarked = after, indent
                return 0
            after += 1
        return after

    def _explicit(self, at: int, text: str) -> tuple[Block, int]:
        """A directive, comment, target, footnote or substitution."""
        lines, indent = self._lines, self._lines.indent(at)
        directive = _DIRECTIVE.match(text) if "::" in text else None
        name, argument = (directive[1].rpartition(":")[2], directive[2] or "") if directive else ("", "")
        if name in _CONTAINERS:
            after = lines.group(at, indent + 1)
            return self._block("paragraph" if argument else "other", at, after), after
        after = lines.indented(at, indent)
        block = self._block("other", at, after)
        if name in _CODE:
            block.kind = "code"
            if argument and "code" in name:
                block.attributes = {"language": argument.split()[0]}
        elif name in _FIGURES:
            block.kind, block.images = "figure", (argument,) if argument else ()
        elif name in _TABLES:
            block.kind = "table"
        return block, after

    def _grid(self, at: int) -> int:
        """The line after a grid table; 0 if none begins here."""
        if not GRID_BORDER.fullmatch(self._lines.text(at)):
            return 0
        after = at + 1
        while self._lines.text(after).startswith(("+", "|")):
            after += 1
        return after if after > at + 2 else 0

    def _simple(self, at: int) -> int:
        """The line after a simple table, which ends with its third border, or a second before a blank line; else 0."""
        if not SIMPLE_BORDER.fullmatch(self._lines.text(at)):
            return 0
        borders = self._borders[self._lines.indent(at)]
        place = bisect_right(borders, at)
        if place == len(borders):
            return 0
        after = borders[place] + 1
        is_header = bool(self._lines.text(after))
        return borders[place + 1] + 1 if is_header and place + 1 < len(borders) else after


def _title_of_all(blocks: tuple[Block, ...]) -> str | None:
    """The title of the document: its first heading, if nothing but remarks stands before and none beside it."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(heading.level == 1 for heading in headings) > 1:
        return None
    before = blocks[: blocks.index(headings[0])]
    return headings[0].title if all(block.kind in ("other", "list_item") for block in before) else None
