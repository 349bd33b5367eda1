"""reStructuredText: section titles, literal blocks, tables and paragraphs, as blocks that hold every character."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from transforms.parsers.drawn_tables import GRID_BORDER, SIMPLE_BORDER
from transforms.records import Block, BlockKind

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_TAB_SIZE = 8
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*")
# An adornment of this length makes a title even where it is shorter than that, as docutils has it.
_ENOUGH = 4
_EXPLICIT = re.compile(r"\.\.(?:[ \t]|$)")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|]+\|[ \t]+)?([A-Za-z0-9][\w.+:-]*?)[ \t]?::(?:[ \t]+(.*)|$)")
_BULLET = re.compile(r"[-*+\u2022\u2023\u2043][ \t]+(?=\S)")
_ENUMERATOR = re.compile(r"\(?(?:[0-9]{1,9}|#|[A-Za-z]|[ivxlcdm]{1,9}|[IVXLCDM]{1,9})[.)][ \t]+(?=\S)")
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


@dataclass(slots=True)
class _Line:
    """A line that is not blank: its span, the columns it is indented by, what is on it, and what stands before."""

    start: int
    end: int
    indent: int
    text: str
    after_blank: bool


class _Reader:
    """The blocks of a reStructuredText, read line by line.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._lines = list(_filled_lines(text))
        # Borders of simple tables, by how far they are indented: a table in a cell is by more.
        self._borders: dict[int, list[int]] = {}
        for place, line in enumerate(self._lines):
            if SIMPLE_BORDER.fullmatch(line.text):
                self._borders.setdefault(line.indent, []).append(place)
        # Styles of titles in the order of their levels: the mark, and whether it is above the title too.
        self._styles: list[tuple[str, bool]] = []
        # After `::`, how far the paragraph is indented that the code belongs to.
        self._before_code: int | None = None

    def read(self) -> Iterator[Block]:
        """All blocks, in order."""
        at = 0
        while at < len(self._lines):
            block, at = self._take(at)
            yield block

    def _take(self, at: int) -> tuple[Block, int]:
        """The block that begins with a line, and the line after it."""
        line = self._lines[at]
        indent, self._before_code = self._before_code, None
        if indent is not None and (after := self._literal(at, indent)):
            return self._block("code", at, after), after
        if not line.indent and (title := self._title(at)):
            return title
        if _EXPLICIT.match(line.text):
            return self._explicit(at)
        if after := self._grid(at) or self._simple(at):
            return self._block("table", at, after), after
        if len(line.text) >= _ENOUGH and _ADORNMENT.fullmatch(line.text):
            return self._block("other", at, at + 1), at + 1
        if line.text.startswith(">>> "):
            after = self._group(at, line.indent)
            return self._block("code", at, after), after
        return self._text(at)

    def _block(self, kind: BlockKind, at: int, after: int) -> Block:
        return Block(kind, self._lines[at].start, self._lines[after - 1].end)

    def _indented(self, at: int, indent: int) -> int:
        """The line after those after `at` that are indented by more, whatever blank lines are between."""
        after = at + 1
        while after < len(self._lines) and self._lines[after].indent > indent:
            after += 1
        return after

    def _group(self, at: int, indent: int) -> int:
        """The line after those after `at` without a blank line between that are indented by so much."""
        after = at + 1
        while self._goes_on(after, indent):
            after += 1
        return after

    def _goes_on(self, at: int, indent: int) -> bool:
        """Whether a line follows the one before it at once and is indented by so much."""
        if at == len(self._lines):
            return False
        line = self._lines[at]
        return not line.after_blank and line.indent >= indent

    def _literal(self, at: int, indent: int) -> int:
        """The line after code that follows `::`, indented or with one punctuation mark before each line; else 0."""
        line = self._lines[at]
        if line.indent > indent:
            return self._indented(at, indent)
        mark, after = line.text[0], self._group(at, line.indent)
        is_quoted = _ADORNMENT.match(mark) and all(
            each.text.startswith(mark) for each in self._lines[at:after]
        )
        return after if is_quoted else 0

    def _title(self, at: int) -> tuple[Block, int] | None:
        """The heading that begins with a line; None if none does."""
        above = bool(_ADORNMENT.fullmatch(self._lines[at].text))
        after = at + 2 + above
        lines = self._lines[at:after]
        if len(lines) < 2 + above or any(line.after_blank for line in lines[1:]):
            return None
        title, mark = lines[above], lines[-1]
        if mark.indent or not _ADORNMENT.fullmatch(mark.text) or (above and mark.text != lines[0].text):
            return None
        if not above and (_NO_TITLE.match(title.text) or _EXPLICIT.match(title.text)):
            return None
        if len(mark.text) < _ENOUGH and len(mark.text) < _width(title.text):
            return None
        style = mark.text[0], above
        if style not in self._styles:
            self._styles.append(style)
        level = min(self._styles.index(style) + 1, _DEEPEST)
        return Block("heading", lines[0].start, mark.end, level, _plain(title.text)), after

    def _explicit(self, at: int) -> tuple[Block, int]:
        """A directive, comment, target, footnote or substitution."""
        line = self._lines[at]
        directive = _DIRECTIVE.match(line.text)
        name, argument = (directive[1].rpartition(":")[2], directive[2] or "") if directive else ("", "")
        if name in _CONTAINERS:
            after = self._group(at, line.indent + 1)
            return self._block("paragraph" if argument else "other", at, after), after
        after = self._indented(at, line.indent)
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
        if not GRID_BORDER.fullmatch(self._lines[at].text):
            return 0
        after = at + 1
        while self._goes_on(after, 0) and self._lines[after].text[0] in "+|":
            after += 1
        return after if after > at + 2 else 0

    def _simple(self, at: int) -> int:
        """The line after a simple table, which ends with its third border, or a second before a blank line; else 0."""
        if not SIMPLE_BORDER.fullmatch(self._lines[at].text):
            return 0
        borders = self._borders[self._lines[at].indent]
        place = bisect_right(borders, at)
        if place == len(borders):
            return 0
        after = borders[place] + 1
        is_header = after < len(self._lines) and not self._lines[after].after_blank
        return borders[place + 1] + 1 if is_header and place + 1 < len(borders) else after

    def _text(self, at: int) -> tuple[Block, int]:
        """A paragraph, or an item of a list."""
        first = self._lines[at]
        item, after = _item(first.text), at + 1
        while self._goes_on(after, first.indent):
            line = self._lines[after]
            if item and line.indent == first.indent and _item(line.text):
                break
            after += 1
        last = self._lines[after - 1]
        if last.text.endswith("::"):
            self._before_code = last.indent + (item if after == at + 1 else 0)
        return self._block("list_item" if item else "paragraph", at, after), after


def _filled_lines(text: str) -> Iterator[_Line]:
    """The lines that are not blank."""
    after_blank = True
    for found in _LINE.finditer(text):
        line = found[0].rstrip()
        if line:
            content = line.lstrip()
            before = line[: len(line) - len(content)]
            start = found.start()
            yield _Line(start, start + len(line), len(before.expandtabs(_TAB_SIZE)), content, after_blank)
        after_blank = not line


def _item(text: str) -> int:
    """Columns before the text of a list item; 0 if it is none."""
    if found := _BULLET.match(text) or _ENUMERATOR.match(text):
        return found.end()
    return 1 if text.startswith(":") and _FIELD.match(text) else 0


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
    title = _INLINE.sub(r"\2", title) if any(mark in title for mark in "`*|") else title
    return title.replace("\\", "").strip()


def _title_of_all(blocks: tuple[Block, ...]) -> str | None:
    """The title of the document: its first heading, if nothing but remarks stands before and none beside it."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(heading.level == 1 for heading in headings) > 1:
        return None
    before = blocks[: blocks.index(headings[0])]
    return headings[0].title if all(block.kind in ("other", "list_item") for block in before) else None
