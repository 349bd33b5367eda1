"""Exact token counts of slices of one text, which is tokenised once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.encodings import EncodingTokenizer
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


def ruler(text: str, tokenizer: Tokenizer, start: int, end: int) -> Ruler:
    """The cheapest exact ruler for a text.

    Args:
        text: The text.
        tokenizer: What counts.
        start: Where the text begins but for white space; no slice that is measured often begins before it.
        end: Where it ends but for white space.
    """
    if tokenizer.name == "character":
        return _CharacterRuler(text)
    if isinstance(tokenizer, EncodingTokenizer) and (cuts := strong_cuts(tokenizer.name)):
        return _PrefixRuler(text, tokenizer, cuts, start, end)
    return _CountingRuler(text, tokenizer, start, end)


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

    def __init__(self, text: str, tokenizer: Tokenizer, start: int, end: int) -> None:
        self._text = text
        self._count = tokenizer.count
        parts = [
            _shifted(tokenizer.boundaries(text[s:e]), s) for s, e in regions_between_gaps(text, start, end)
        ]
        self.ends = _joined(parts)
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

    A strong cut is always the end of a token, so only those are looked at. Where tokens end is not asked of a text
    that fits as a whole.
    """

    def __init__(
        self, text: str, tokenizer: EncodingTokenizer, cuts: StrongCuts, start: int, end: int
    ) -> None:
        self._text = text
        self._start, self._end = start, end
        self._tokenizer = tokenizer
        self._count = tokenizer.count
        self._is_strong = cuts.at
        self._parts = [(s, e, tokenizer.encode(text[s:e])) for s, e in regions_between_gaps(text, start, end)]
        self._total = sum(len(ids) for _, _, ids in self._parts)
        self._head = (start, start, 0, 0)

    @cached_property
    def ends(self) -> NDArray[np.int64]:  # type: ignore[override]
        text, ends = self._text, self._tokenizer.ends
        return _joined([_shifted(ends(text[start:end], ids), start) for start, end, ids in self._parts])

    @cached_property
    def _ends(self) -> memoryview[int]:  # type: ignore[override]
        return memoryview(self.ends)  # type: ignore[arg-type]

    def count(self, start: int, end: int) -> int:
        if start == self._start and end == self._end:
            return self._total
        text, ends = self._text, self._ends
        _, first, tokens_before, head = self._head if self._head[0] == start else self._find_head(start)
        if first > end or end > self._end:
            return self._count(text[start:end])
        after = bisect_right(ends, end, tokens_before)
        while after > tokens_before:
            last = ends[after - 1]
            if last == self._end or self._is_strong(text, last):
                break
            after -= 1
        else:
            last = first
        tokens = head + after - tokens_before
        return tokens + self._count(text[last:end]) if last < end else tokens

    def reach(self, start: int, budget: int) -> int:
        if start == self._start and budget >= self._total:
            return self._end
        text, ends = self._text, self._ends
        _, first, tokens_before, head = self._head if self._head[0] == start else self._find_head(start)
        if first > self._end:
            return super().reach(start, budget)
        last = tokens_before + max(budget - head, 1) - 1
        # A piece that does not fit whole may still fit without its last characters.
        for place in range(last, min(last + _PIECE_TOKENS, len(ends))):
            if ends[place] == self._end or self._is_strong(text, ends[place]):
                return ends[place]
        return ends[last] if last < len(ends) else len(text)

    def _find_head(self, start: int) -> tuple[int, int, int, int]:
        """The first strong cut from `start` on, the tokens before it, and those of the slice up to it.

        A cut beyond the text stands for one that is too far away to be looked for.
        """
        text, ends = self._text, self._ends
        place = bisect_left(ends, start)
        for at in range(place, min(place + _PIECE_TOKENS, len(ends))):
            cut = ends[at]
            if cut == self._end or (start and self._is_strong(text, cut)):
                before = at + 1
                while before < len(ends) and ends[before] == cut:
                    before += 1
                head = self._count(text[start:cut]) if start < cut else 0
                self._head = (start, cut, before, head)
                return self._head
        self._head = (start, len(text) + 1, 0, 0)
        return self._head


def _shifted(ends: Sequence[int] | NDArray[np.int64], start: int) -> NDArray[np.int64]:
    array = np.asarray(ends, np.int64)
    return array + start if start else array


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)


def regions_between_gaps(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The parts of a slice between its hard gaps: runs of `HARD_GAP` and more white-space characters."""
    regions = []
    probe = start + HARD_GAP // 2
    while probe < end:
        # Such a run covers a multiple of half its length, so no probe can miss it.
        if text[probe].isspace():
            gap_start, gap_end = white_start(text, probe, start), white_end(text, probe, end)
            if gap_end - gap_start >= HARD_GAP:
                if gap_start > start:
                    regions.append((start, gap_start))
                start = gap_end
            probe = max(probe, gap_end)
        probe += HARD_GAP // 2
    if start < end:
        regions.append((start, end))
    return regions


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
