"""Clean edges of slices: no white space that says nothing, no divided grapheme cluster."""

from __future__ import annotations

from transforms.chunkers import compiled
from transforms.chunkers.graphemes import Graphemes


class Edges:
    """Where the slices of one text begin and end.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._has_returns = "\r" in text
        self._graphemes = Graphemes(text) if self._has_returns or not text.isascii() else None

    def before(self, position: int) -> int:
        """Last position up to another one that divides no grapheme cluster."""
        return self._graphemes.floor(position) if self._graphemes else position

    def after(self, position: int) -> int:
        """First position from another one on that divides no grapheme cluster."""
        return self._graphemes.ceil(position) if self._graphemes else position

    def begin(self, position: int, limit: int, keep_spaces: bool = False) -> int:
        """Where a chunk from `position` on begins: after blank lines, before the indentation of its first line.

        Args:
            position: First position it may hold.
            limit: End of what it may hold; returned if there is only white space up to it.
            keep_spaces: Whether spaces in the middle of a line, where `position` is, are held too.
        """
        text = self._text
        if position < limit and not text[position].isspace():
            return position
        seen = white_end(text, position, limit)
        if seen == limit:
            return limit
        line = text.rfind("\n", position, seen) + 1
        if self._has_returns:
            line = max(line, text.rfind("\r", position, seen) + 1)
        if not line:
            line = position if keep_spaces or not position or text[position - 1] in "\n\r" else seen
        # White space can be the base of a cluster: a space with a combining mark.
        line = self.before(line)
        return line if line > position else position

    def finish(self, position: int, start: int) -> int:
        """Where a chunk up to `position` ends: without trailing white space; at least at `start`."""
        text = self._text
        if position > start and not text[position - 1].isspace():
            return position
        end = self.after(white_start(text, position, start))
        return end if end > start else start


def edges_of(text: str) -> Edges:
    """The edges of a text, by compiled code where there is some.

    Args:
        text: The text.
    """
    edges: Edges = compiled.native.Edges(text, Graphemes) if compiled.native else Edges(text)
    return edges


def white_end(text: str, start: int, end: int) -> int:
    """First position from `start` on, up to `end`, that is not white space."""
    step = 16
    while start < end:
        after = start + step
        block = text[start:after] if after < end else text[start:end]
        rest = len(block.lstrip())
        if rest:
            return start + len(block) - rest
        start, step = after, step * 4
    return end


def white_start(text: str, end: int, start: int) -> int:
    """Last position from `end` back, down to `start`, that no white space precedes."""
    step = 16
    while end > start:
        before = end - step
        block = text[before:end] if before > start else text[start:end]
        rest = len(block.rstrip())
        if rest:
            return end - len(block) + rest
        end, step = before, step * 4
    return start
