"""Lines of a reStructuredText, and what they say by themselves: headings, paragraphs, items of lists, code after `::`.

`Lines` has a compiled twin.
"""

from __future__ import annotations

import operator
import re
import string
from itertools import accumulate

from transforms.parsers import compiled
from transforms.parsers.restructured_titles import DEEPEST, ENOUGH, plain, width
from transforms.records import Block

_TAB_SIZE = 8
_MARKS = frozenset(string.punctuation)
# What directives, comments, tables and tests of code begin with.
_MORE = frozenset(".+=>")
_BULLET = r"[-*+\u2022\u2023\u2043]"
_ENUMERATOR = r"\(?(?:[0-9]{1,9}|#|[A-Za-z]|[ivxlcdm]{1,9}|[IVXLCDM]{1,9})[.)]"
_ITEM = re.compile(rf"(?:{_BULLET}|{_ENUMERATOR})[ \t]+(?=\S)")
# What an enumerator that begins with a letter goes on with.
_LETTERS = frozenset(string.ascii_letters)
_AFTER_LETTER = frozenset(".)ivxlcdmIVXLCDM")
_NO_TITLE = re.compile(r"[-*+\u2022\u2023\u2043|][ \t]|>>>[ \t]|__[ \t]|\.\.(?:[ \t]|$)")
_FIELD = re.compile(r":(?![: ])(?:\\.|[^:\\]|:(?!\s|`))*:(?:[ \t]|$)")


class Lines:
    """The lines of a reStructuredText.

    After the last there is one more that is blank.

    Args:
        text: The text; its lines end in LF.
    """

    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        lines.append("")
        self.last = len(lines) - 1
        """Number of the last line."""
        self.before_code = -1
        """After `::`, how far the paragraph is indented that code may belong to; else -1."""
        # Levels of headings by their styles: the mark, and whether it is above the title too.
        self._levels: dict[tuple[str, bool], int] = {}
        # Columns, for an object a line takes longer than all that is asked of most lines: how many characters are
        # before a line, line breaks apart; the line without white space at its end, what is on it (nothing if it is
        # blank), and the columns before that.
        self._before = list(accumulate(map(len, lines), initial=0))
        self._lines = lines = list(map(str.rstrip, lines))
        self._texts = list(map(str.lstrip, lines))
        self._indents: list[int] = list(map(operator.sub, map(len, lines), map(len, self._texts)))
        if "\t" in text:
            for at in [at for at, line in enumerate(lines) if "\t" in line]:
                self._indents[at] = len(lines[at][: self._indents[at]].expandtabs(_TAB_SIZE))

    def text(self, at: int) -> str:
        """What is on a line, without white space around it."""
        return self._texts[at]

    def indent(self, at: int) -> int:
        """How many columns are before that; none if the line is blank."""
        return self._indents[at]

    def span(self, at: int, after: int) -> tuple[int, int]:
        """Where the lines [at, after) are in the text, white space at their end left out."""
        before, last = self._before, after - 1
        return before[at] + at, before[last] + last + len(self._lines[last])

    def is_adornment(self, at: int) -> bool:
        """Whether a line is one punctuation mark, again and again."""
        text = self._texts[at]
        # That it ends as it begins tells it from nearly all others.
        return bool(text) and text[0] == text[-1] and text[0] in _MARKS and not text.strip(text[0])

    def beginning_with(self, mark: str) -> list[int]:
        """The lines that begin with a character, white space left out."""
        return [at for at, text in enumerate(self._texts) if text and text[0] == mark]

    def group(self, at: int, indent: int) -> int:
        """The line after those after `at` without a blank line between that are indented by so much."""
        if not indent:
            return self._texts.index("", at)
        after = at + 1
        while self._indents[after] >= indent:
            after += 1
        return after

    def indented(self, at: int, indent: int) -> int:
        """The line after those after `at` that are indented by more, whatever blank lines are between."""
        last = at
        for after in range(at + 1, len(self._texts)):
            if self._indents[after] > indent:
                last = after
            elif self._texts[after]:
                break
        return last + 1

    def add_plain(self, at: int, blocks: list[Block]) -> int:
        """Add the blocks from a line on, up to a line that may begin what must be looked at; that line or the last.

        Those are headings, paragraphs, items of lists, and code that is indented after `::`.
        """
        texts = self._texts
        while at < self.last:
            text = texts[at]
            if not text:
                at += 1
            elif self._indents[at] > self.before_code >= 0:
                after = self.indented(at, self.before_code)
                blocks.append(Block("code", *self.span(at, after)))
                self.before_code, at = -1, after
            elif self.before_code >= 0 and text[0] in _MARKS:
                break
            elif after := self.add_heading(at, blocks):
                at = after
            elif text[0] in _MORE or self.is_adornment(at):
                break
            else:
                at = self.add_text(at, blocks)
        return at

    def add_heading(self, at: int, blocks: list[Block]) -> int:
        """Add the heading that begins with a line; the line after it, 0 if there is none."""
        above = self.is_adornment(at)
        underline = at + 1 + above
        title = self._texts[at + above]
        if self._indents[at] or not title or not self.is_adornment(underline) or self._indents[underline]:
            return 0
        mark = self._texts[underline]
        if mark != self._texts[at] if above else _NO_TITLE.match(title):
            return 0
        if len(mark) < ENOUGH and len(mark) < width(title):
            return 0
        level = self._levels.setdefault((mark[0], above), len(self._levels) + 1)
        after = underline + 1
        blocks.append(Block("heading", *self.span(at, after), min(level, DEEPEST), plain(title)))
        self.before_code = -1
        return after

    def add_text(self, at: int, blocks: list[Block]) -> int:
        """Add the paragraph or the item of a list that begins with a line; the line after it."""
        text, indent = self._texts[at], self._indents[at]
        # By its first two characters most text is known to be no item of a list.
        item = _item(text) if text[0] not in _LETTERS or text[1:2] in _AFTER_LETTER else 0
        after = self._item_end(at, indent) if item else self.group(at, indent)
        is_before_code = self._texts[after - 1].endswith("::")
        self.before_code = (
            self._indents[after - 1] + (item if after == at + 1 else 0) if is_before_code else -1
        )
        blocks.append(Block("list_item" if item else "paragraph", *self.span(at, after)))
        return after

    def _item_end(self, at: int, indent: int) -> int:
        """The line after an item of a list: like `group`, but for the next item of the same list."""
        after = at + 1
        while (text := self._texts[after]) and self._indents[after] >= indent:
            if self._indents[after] == indent and _item(text):
                break
            after += 1
        return after


def lines_of(text: str) -> Lines:
    """The lines of a reStructuredText, by compiled code where there is some.

    Args:
        text: The text; its lines end in LF.
    """
    lines: Lines = compiled.native.Lines(text) if compiled.native else Lines(text)
    return lines


def _item(text: str) -> int:
    """Columns before the text of a list item; 0 if it is none."""
    found = _ITEM.match(text)
    if found:
        return found.end()
    return 1 if text[0] == ":" and _FIELD.match(text) else 0
