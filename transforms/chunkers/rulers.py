"""Exact token counts of slices of one text, which is tokenised once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.strong_cuts import StrongCuts, strong_cuts

# tiktoken panics on 1,000,000 white-space characters in a row, and nobody wants a chunk that spans this many.
HARD_GAP = 100_000
# Tokens that are looked at for a strong cut: a word and then some. Beyond that a direct count is as cheap.
_PIECE_TOKENS = 64


class Ruler(Protocol):
    """Token counts of slices of one text."""

    @property
    def ends(self) -> NDArray[np.int64]:
        """End of each token of the whole text, in code points, as in `Tokenizer.boundaries`."""

    def count(self, start: int, end: int) -> int:
        """Tokens of the slice."""

    def reach(self, start: int, budget: int) -> int:
        """About the furthest end of a slice from `start` within `budget` tokens, rather too far than too near."""

    def back(self, end: int, budget: int) -> int:
        """About the earliest start of a slice up to `end` within `budget` tokens."""


def ruler(text: str, tokenizer: Tokenizer) -> Ruler:
    """The cheapest exact ruler for a text.

    Args:
        text: The text.
        tokenizer: What counts.
    """
    if tokenizer.name == "character":
        return _CharacterRuler(text)
    cuts = strong_cuts(tokenizer.name)
    return _CountingRuler(text, tokenizer) if cuts is None else _PrefixRuler(text, tokenizer, cuts)


class _CharacterRuler:
    def __init__(self, text: str) -> None:
        self._length = len(text)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        return np.arange(1, self._length + 1)

    def count(self, start: int, end: int) -> int:
        return end - start

    def reach(self, start: int, budget: int) -> int:
        return min(start + budget, self._length)

    def back(self, end: int, budget: int) -> int:
        return max(end - budget, 0)


class _CountingRuler:
    """Counts each slice anew; the token boundaries of the whole text are a hint where to look."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._text = text
        self._count = tokenizer.count
        self.ends = _boundaries(text, tokenizer)
        # Single elements of a memoryview cost a fraction of those of an array.
        self._ends: memoryview[int] = memoryview(self.ends)  # type: ignore[arg-type]

    def count(self, start: int, end: int) -> int:
        return self._count(self._text[start:end])

    def reach(self, start: int, budget: int) -> int:
        last = bisect_right(self._ends, start) + budget - 1
        return self._ends[last] if last < len(self._ends) else len(self._text)

    def back(self, end: int, budget: int) -> int:
        first = bisect_right(self._ends, end) - budget - 1
        return self._ends[first] if first >= 0 else 0


class _PrefixRuler(_CountingRuler):
    """Counts by subtraction between strong cuts, and anew only the word or the punctuation at either end.

    A strong cut is always the end of a token, so only those are looked at.
    """

    def __init__(self, text: str, tokenizer: Tokenizer, cuts: StrongCuts) -> None:
        super().__init__(text, tokenizer)
        self._is_strong = cuts.at
        self._head: tuple[int, int, int, int] = (0, 0, 0, 0)

    def count(self, start: int, end: int) -> int:
        text, ends = self._text, self._ends
        _, first, tokens_before, head = self._head if self._head[0] == start else self._find_head(start)
        if first > end:
            return self._count(text[start:end])
        after = bisect_right(ends, end, tokens_before)
        while after > tokens_before:
            last = ends[after - 1]
            if last == len(text) or self._is_strong(text, last):
                break
            after -= 1
        else:
            last = first
        tokens = head + after - tokens_before
        return tokens + self._count(text[last:end]) if last < end else tokens

    def reach(self, start: int, budget: int) -> int:
        text, ends = self._text, self._ends
        _, first, tokens_before, head = self._head if self._head[0] == start else self._find_head(start)
        if first > len(text):
            return super().reach(start, budget)
        last = tokens_before + max(budget - head, 1) - 1
        # A piece that does not fit whole may still fit without its last characters.
        for place in range(last, min(last + _PIECE_TOKENS, len(ends))):
            if ends[place] == len(text) or self._is_strong(text, ends[place]):
                return ends[place]
        return ends[last] if last < len(ends) else len(text)

    def _find_head(self, start: int) -> tuple[int, int, int, int]:
        """The first strong cut from `start` on, the tokens before it, and those of the slice up to it.

        A cut beyond the text stands for one that is too far away to be looked for.
        """
        text, ends = self._text, self._ends
        if start == 0:
            self._head = (0, 0, 0, 0)
            return self._head
        place = bisect_left(ends, start)
        for at in range(place, min(place + _PIECE_TOKENS, len(ends))):
            cut = ends[at]
            if cut == len(text) or self._is_strong(text, cut):
                before = at + 1
                while before < len(ends) and ends[before] == cut:
                    before += 1
                head = self._count(text[start:cut]) if start < cut else 0
                self._head = (start, cut, before, head)
                return self._head
        self._head = (start, len(text) + 1, 0, 0)
        return self._head


def _boundaries(text: str, tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Token ends of a text, tokenised once, but for its hard gaps."""
    if len(text) < HARD_GAP:
        return np.asarray(tokenizer.boundaries(text), np.int64)
    parts = [
        np.asarray(tokenizer.boundaries(text[start:end]), np.int64) + start
        for start, end in regions_between_gaps(text)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def regions_between_gaps(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text between its hard gaps: runs of `HARD_GAP` and more white-space characters."""
    start, probe = 0, HARD_GAP // 2
    while probe < len(text):
        # Such a run covers a multiple of half its length, so no probe can miss it.
        if text[probe].isspace():
            gap_start, gap_end = white_start(text, probe, start), white_end(text, probe, len(text))
            if gap_end - gap_start >= HARD_GAP:
                if gap_start > start:
                    yield start, gap_start
                start = gap_end
            probe = max(probe, gap_end - gap_end % (HARD_GAP // 2))
        probe += HARD_GAP // 2
    if start < len(text):
        yield start, len(text)


def white_end(text: str, start: int, end: int) -> int:
    """First position from `start` on, up to `end`, that is not white space."""
    step = 32
    while start < end:
        block = text[start : min(start + step, end)]
        rest = len(block.lstrip())
        start += len(block) - rest
        if rest:
            return start
        step *= 4
    return end


def white_start(text: str, end: int, start: int) -> int:
    """Last position from `end` back, down to `start`, that no white space precedes."""
    step = 32
    while end > start:
        block = text[max(end - step, start) : end]
        rest = len(block.rstrip())
        end -= len(block) - rest
        if rest:
            return end
        step *= 4
    return start
