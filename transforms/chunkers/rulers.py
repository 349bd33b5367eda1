"""Exact token counts of slices of one text, which is tokenised once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.strong_cuts import StrongCuts, strong_cuts

# tiktoken panics on 1,000,000 white-space characters in a row, and nobody wants a chunk that spans this many.
HARD_GAP = 100_000


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
        self._tokenizer = tokenizer
        parts = [
            np.asarray(tokenizer.boundaries(text[start:end]), np.int64) + start
            for start, end in regions_between_gaps(text)
        ]
        self.ends = np.concatenate(parts) if parts else np.empty(0, np.int64)

    def count(self, start: int, end: int) -> int:
        return self._tokenizer.count(self._text[start:end])

    def reach(self, start: int, budget: int) -> int:
        last = int(self.ends.searchsorted(start, "right")) + budget - 1
        return int(self.ends[last]) if last < len(self.ends) else len(self._text)

    def back(self, end: int, budget: int) -> int:
        first = int(self.ends.searchsorted(end, "right")) - budget - 1
        return int(self.ends[first]) if first >= 0 else 0


class _PrefixRuler(_CountingRuler):
    """Counts by subtraction between strong cuts, and anew only the word or the punctuation at either end."""

    def __init__(self, text: str, tokenizer: Tokenizer, cuts: StrongCuts) -> None:
        super().__init__(text, tokenizer)
        self._cuts = cuts

    def count(self, start: int, end: int) -> int:
        first = self._cuts.first(self._text, start, end)
        if first is None:
            return super().count(start, end)
        last = self._cuts.last(self._text, first, end)
        low, high = self.ends.searchsorted((first, last), "right")
        total = int(high - low)
        if start < first:
            total += super().count(start, first)
        if last < end:
            total += super().count(last, end)
        return total

    def reach(self, start: int, budget: int) -> int:
        first = self._cuts.first(self._text, start, len(self._text))
        if first is not None and start < first:
            budget = max(budget - super().count(start, first), 1)
            start = first
        furthest = super().reach(start, budget)
        # A piece that does not fit whole may still fit without its last characters.
        beyond = self._cuts.first(self._text, furthest, len(self._text))
        return furthest if beyond is None else beyond


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
