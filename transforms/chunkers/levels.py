"""Levels: how the boundaries of one kind are found around the place where a cut is wanted.

A boundary is the position after its mark: what divides stays with the piece on its left. The levels that are used
most have compiled twins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

_WHITE_SPACE = re.compile(r"\s")
# How far before its boundary a mark may stand: a stop, a few closers, a reference or two, a space.
MARK_REACH = 16

Accept = Callable[[str, int], "int | None"]


class Level(Protocol):
    """One rung of the ladder, on one text."""

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""


@lru_cache(1024)
def any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for any of some marks; for single characters a set, which is the fastest."""
    escaped = map(re.escape, marks)
    return re.compile(f"[{''.join(escaped)}]" if all(len(mark) == 1 for mark in marks) else "|".join(escaped))


class MarkLevel:
    """Boundaries after certain marks.

    Args:
        text: The text.
        marks: What may make a boundary.
        accept: Given the text and the position of a mark, the boundary it makes there, or None.
        likely: Finds the marks that may be accepted, with what follows them, so that others cost no call.
    """

    def __init__(
        self, text: str, marks: Sequence[str], accept: Accept, likely: re.Pattern[str] | None = None
    ) -> None:
        self._text = text
        self._marks = [mark for mark in marks if mark in text]
        self._any = (likely or any_of(tuple(self._marks))) if self._marks else None
        self._accept = accept

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""
        text, best, low = self._text, None, start
        for mark in self._marks:
            high = end + len(mark)
            while (at := text.rfind(mark, low, high)) >= 0:
                boundary = self._accept(text, at)
                if boundary is not None and boundary > start:
                    best, low = boundary, at + 1
                    break
                high = at + len(mark) - 1
        return best

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        at = max(0, start - MARK_REACH) - 1
        while self._any and (match := self._any.search(self._text, at + 1, end)):
            at = match.start()
            boundary = self._accept(self._text, at)
            if boundary is not None and boundary > start:
                return boundary if boundary < end else None
        return None


class SeparatorLevel:
    """Boundaries after one separator.

    Args:
        text: The text.
        separator: The separator, not empty.
    """

    def __init__(self, text: str, separator: str) -> None:
        self._text = text
        self._separator = separator
        self._length = len(separator)

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""
        at = self._text.rfind(self._separator, start, end + self._length)
        return None if at < 0 else at + self._length

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        at = self._text.find(self._separator, max(0, start - self._length + 1), max(0, end - 1))
        return None if at < 0 else at + self._length


class WordLevel:
    """Boundaries after white space.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose white space is at or before `end`; None if there is none."""
        high, step = min(end + 1, len(self._text)), 64
        while high > start:
            part = self._text[max(start, high - step) : high]
            if part[-1].isspace():
                return high
            word = part.rsplit(None, 1)[-1]
            high -= len(word)
            if len(word) < len(part):
                return high
            step *= 4
        return None

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        match = _WHITE_SPACE.search(self._text, start, max(0, end - 1))
        return match.end() if match else None


class PlaceLevel:
    """Boundaries at given places.

    Args:
        ends: Where the pieces end, ascending.
        starts: Where the piece after each of them starts.
    """

    def __init__(self, ends: Sequence[int], starts: Sequence[int]) -> None:
        self._ends = ends
        self._starts = starts

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose piece ends at or before `end`; None if there is none."""
        place = bisect_right(self._ends, end) - 1
        return self._starts[place] if place >= 0 and self._starts[place] > start else None

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        place = bisect_right(self._starts, start)
        return self._starts[place] if place < len(self._starts) and self._starts[place] < end else None


class AnyOf:
    """Boundaries of several levels.

    Args:
        levels: The levels. To look for the first boundary of each but the last must cost little, however far it is.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self._levels = levels

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""
        found = (level.last(start, end) for level in self._levels)
        return max((boundary for boundary in found if boundary is not None), default=None)

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        best = None
        for level in self._levels:
            boundary = level.first(start, end if best is None else best)
            best = best if boundary is None else boundary
        return best


class KeepingWhole:
    """A level without the boundaries that lie inside certain spans.

    Args:
        level: The level.
        starts: Where what is kept whole starts, ascending; each is a boundary.
        ends: Where each of these ends.
    """

    def __init__(self, level: Level, starts: Sequence[int], ends: Sequence[int]) -> None:
        self._level = level
        self._starts = starts
        self._ends = ends

    def last(self, start: int, end: int) -> int | None:
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""
        boundary = self._level.last(start, end)
        if boundary is None:
            return None
        span = bisect_right(self._starts, boundary - 1) - 1
        if span < 0 or boundary >= self._ends[span]:
            return boundary
        return self._starts[span] if self._starts[span] > start else None

    def first(self, start: int, end: int) -> int | None:
        """First boundary after `start` and before `end`; None if there is none."""
        while (boundary := self._level.first(start, end)) is not None:
            span = bisect_right(self._starts, boundary - 1) - 1
            if span < 0 or boundary >= self._ends[span]:
                return boundary
            if self._starts[span] > start:
                return self._starts[span]
            start = self._ends[span] - 1
        return None
