"""reStructuredText: section titles, literal blocks, tables and paragraphs, as blocks that hold every character."""

from __future__ import annotations

import operator
import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from transforms.parsers.drawn_tables import GRID_BORDER, SIMPLE_BORDER
from transforms.records import Block, BlockKind

_TAB_SIZE = 8
_MARKS = frozenset(string.punctuation)
# An adornment of this length makes a title even where it is shorter than that, as docutils has it.
_ENOUGH = 4
_EXPLICIT = re.compile(r"\.\.(?:[ \t]|$)")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([A-Za-z0-9][\w.+:-]*?)[ \t]?::(?:[ \t]+(.*)|$)")
_BULLET = r"[-*+\u2022\u2023\u2043]"
_ENUMERATOR = r"\(?(?:[0-9]{1,9}|#|[A-Za-z]|[ivxlcdm]{1,9}|[IVXLCDM]{1,9})[.)]"
_ITEM = re.compile(rf"(?:{_BULLET}|{_ENUMERATOR})[ \t]+(?=\S)")
# What an enumerator that begins with a letter goes on with.
_LETTERS = frozenset(string.ascii_letters)
_AFTER_LETTER = frozenset(".)ivxlcdmIVXLCDM")
_FIELD = re.compile(r":(?![: ])(?:\\.|[^:\\]|:(?!\s|`))*:(?:[ \t]|$)")
_NO_TITLE = re.compile(r"[-*+\u2022\u2023\u2043|][ \t]|>>>[ \t]|__[ \t]")
_ROLE = re.compile(r":[\w.:+-]{1,99}:(?=`)")
_REFERENCE = re.compile(r"`([^`<]*)[ \t]*<[^`>]*>`_{0,2}")
_INLINE = re.compile(r"(?<!\w)(``|\*\*|[`*|])(?=\S)(.+?)(?<=\S)\1_{0,2}(?!\w)")
_LONGEST_TITLE = 1000
# To look for markup may take time with the square of what is looked at.
_LONGEST_MARKED = 200
_DEEPEST = 6
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
        # One more, so that there always is a line after the last that is not blank.
        lines = text.split("\n")
        lines.append("")
        # Columns, for an object a line takes longer than all that is asked of most lines: how many characters are
        # before a line, line breaks apart; the line without white space at its end, what is on it (nothing if it is
        # blank), and the columns before that.
        self._before = list(accumulate(map(len, lines), initial=0))
        self._lines = lines = list(map(str.rstrip, lines))
        self._texts = list(map(str.lstrip, lines))
        self._indents = list(map(operator.sub, map(len, lines), map(len, self._texts)))
        if "\t" in text:
            for at in [at for at, line in enumerate(lines) if "\t" in line]:
                self._indents[at] = len(lines[at][: self._indents[at]].expandtabs(_TAB_SIZE))
        # Styles of titles in the order of their levels: the mark, and whether it is above the title too.
        self._styles: list[tuple[str, bool]] = []
        # After `::`, how far the paragraph is indented that the code belongs to.
        self._before_code: int | None = None
        # A line that made those before it no code, for it lacks their mark, and the least that they are indented by:
        # not to look for it again from each of them.
        self._unmarked = 0, 0

    @cached_property
    def _borders(self) -> dict[int, list[int]]:
        """Borders of simple tables, by how far they are indented: a table in a cell is by more."""
        borders: dict[int, list[int]] = {}
        for place, text in enumerate(self._texts):
            if text and text[0] == "=" and SIMPLE_BORDER.fullmatch(text):
                borders.setdefault(self._indents[place], []).append(place)
        return borders

    def read(self) -> list[Block]:
        """All blocks, in order."""
        texts, blocks, at = self._texts, [], 0
        # The last line is blank, and what stands before it ends by then.
        end = len(texts) - 1
        while at < end:
            if texts[at]:
                block, at = self._take(at)
                blocks.append(block)
            else:
                at += 1
        return blocks

    def _take(self, at: int) -> tuple[Block, int]:
        """The block that begins with a line, and the line after it."""
        texts, indent = self._texts, self._indents[at]
        text, below = texts[at], texts[at + 1]
        if self._before_code is not None:
            before, self._before_code = self._before_code, None
            if after := self._literal(at, before):
                return self._block("code", at, after), after
        mark = text[0]
        is_marked = mark in _MARKS
        # A line of one mark ends as it begins, which tells it from nearly all others.
        if not indent and (
            (below and below[0] == below[-1] and below[0] in _MARKS) or (is_marked and mark == text[-1])
        ):
            title = self._title(at)
            if title:
                return title
        if is_marked:
            marked = self._marked(at)
            if marked:
                return marked
        # By its first two characters most text is known to be no item of a list.
        item = _item(text) if mark not in _LETTERS or text[1:2] in _AFTER_LETTER else 0
        after = self._item_end(at, indent) if item else self._group(at, indent)
        if texts[after - 1].endswith("::"):
            self._before_code = self._indents[after - 1] + (item if after == at + 1 else 0)
        return self._block("list_item" if item else "paragraph", at, after), after

    def _marked(self, at: int) -> tuple[Block, int] | None:
        """The block that begins with a line of a punctuation mark at its start; None if it is text or a list item."""
        text = self._texts[at]
        mark = text[0]
        if mark == "." and _EXPLICIT.match(text):
            return self._explicit(at)
        after = self._grid(at) if mark == "+" else self._simple(at) if mark == "=" else 0
        if after:
            return self._block("table", at, after), after
        if len(text) >= _ENOUGH and _is_adornment(text):
            return self._block("other", at, at + 1), at + 1
        if text.startswith(">>> "):
            after = self._group(at, self._indents[at])
            return self._block("code", at, after), after
        return None

    def _block(self, kind: BlockKind, at: int, after: int) -> Block:
        before, last = self._before, after - 1
        return Block(kind, before[at] + at, before[last] + last + len(self._lines[last]))

    def _indented(self, at: int, indent: int) -> int:
        """The line after those after `at` that are indented by more, whatever blank lines are between."""
        last = at
        for after in range(at + 1, len(self._texts)):
            if self._indents[after] > indent:
                last = after
            elif self._texts[after]:
                break
        return last + 1

    def _group(self, at: int, indent: int) -> int:
        """The line after those after `at` without a blank line between that are indented by so much."""
        if not indent:
            return self._texts.index("", at)
        after = at + 1
        while self._indents[after] >= indent:
            after += 1
        return after

    def _literal(self, at: int, indent: int) -> int:
        """The line after code that follows `::`, indented or with one punctuation mark before each line; else 0."""
        if self._indents[at] > indent:
            return self._indented(at, indent)
        mark, indent = self._texts[at][0], self._indents[at]
        unmarked, unmarked_in = self._unmarked
        if mark not in _MARKS or (at < unmarked and indent <= unmarked_in):
            return 0
        after = at + 1
        while (text := self._texts[after]) and self._indents[after] >= indent:
            if not text.startswith(mark):
                self._unmarked = after, indent
                return 0
            after += 1
        return after

    def _title(self, at: int) -> tuple[Block, int] | None:
        """The heading that begins with a line; None if none does."""
        first = self._texts[at]
        above = _is_adornment(first)
        title, last = self._texts[at + above], at + above + 1
        if not title or not _is_adornment(mark := self._texts[last]):
            return None
        if self._indents[last] or (above and mark != first):
            return None
        if not above and (_NO_TITLE.match(title) or _EXPLICIT.match(title)):
            return None
        if len(mark) < _ENOUGH and len(mark) < _width(title):
            return None
        style = mark[0], above
        if style not in self._styles:
            self._styles.append(style)
        level = min(self._styles.index(style) + 1, _DEEPEST)
        after = last + 1
        block = self._block("heading", at, after)
        block.level, block.title = level, _plain(title)
        return block, after

    def _explicit(self, at: int) -> tuple[Block, int]:
        """A directive, comment, target, footnote or substitution."""
        indent = self._indents[at]
        directive = _DIRECTIVE.match(self._texts[at])
        name, argument = (directive[1].rpartition(":")[2], directive[2] or "") if directive else ("", "")
        if name in _CONTAINERS:
            after = self._group(at, indent + 1)
            return self._block("paragraph" if argument else "other", at, after), after
        after = self._indented(at, indent)
        block = self._block("other", at, after)
        if name in _CODE:
            language = argument.split()[0] if argument and "code" in name else ""
            attributes = {"language": language} if language else {}
            block = replace(block, kind="code", attributes=attributes)
        elif name in _FIGURES:
            block = replace(block, kind="figure", images=(argument,) if argument else ())
        elif name in _TABLES:
            block = replace(block, kind="table")
        return block, after

    def _grid(self, at: int) -> int:
        """The line after a grid table; 0 if none begins here."""
        if not GRID_BORDER.fullmatch(self._texts[at]):
            return 0
        after = at + 1
        while self._texts[after].startswith(("+", "|")):
            after += 1
        return after if after > at + 2 else 0

    def _simple(self, at: int) -> int:
        """The line after a simple table, which ends with its third border, or a second before a blank line; else 0."""
        if not SIMPLE_BORDER.fullmatch(self._texts[at]):
            return 0
        borders = self._borders[self._indents[at]]
        place = bisect_right(borders, at)
        if place == len(borders):
            return 0
        after = borders[place] + 1
        is_header = bool(self._texts[after])
        return borders[place + 1] + 1 if is_header and place + 1 < len(borders) else after

    def _item_end(self, at: int, indent: int) -> int:
        """The line after an item of a list: like `_group`, but for the next item of the same list."""
        after = at + 1
        while (text := self._texts[after]) and self._indents[after] >= indent:
            if self._indents[after] == indent and _item(text):
                break
            after += 1
        return after


def _is_adornment(text: str) -> bool:
    """Whether a line is one punctuation mark, again and again."""
    return bool(text) and text[0] == text[-1] and text[0] in _MARKS and not text.strip(text[0])


def _item(text: str) -> int:
    """Columns before the text of a list item; 0 if it is none."""
    found = _ITEM.match(text)
    if found:
        return found.end()
    return 1 if text[0] == ":" and _FIELD.match(text) else 0


def _width(text: str) -> int:
    """Columns that a title takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def _plain(title: str) -> str:
    """A title without markup."""
    title = title[:_LONGEST_TITLE].strip()
    if len(title) > _LONGEST_MARKED:
        return title
    if "`" in title:
        title = _REFERENCE.sub(r"\1", _ROLE.sub("", title))
    if "`" in title or "*" in title or "|" in title:
        title = _INLINE.sub(r"\2", title)
    return title.replace("\\", "").strip()


def _title_of_all(blocks: tuple[Block, ...]) -> str | None:
    """The title of the document: its first heading, if nothing but remarks stands before and none beside it."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(heading.level == 1 for heading in headings) > 1:
        return None
    before = blocks[: blocks.index(headings[0])]
    return headings[0].title if all(block.kind in ("other", "list_item") for block in before) else None
