"""Exact token counts of slices of one text, which is tokenised once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.characters import CharacterTokenizer
from transforms.tokenizers.encodings import EncodingTokenizer
from transforms.tokenizers.strong_cuts import ALWAYS, StrongCuts, after_black, strong_cuts

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
    if isinstance(tokenizer, CharacterTokenizer):
        return _CharacterRuler(text)
    if isinstance(tokenizer, EncodingTokenizer) and (cuts := strong_cuts(tokenizer.name)) is not None:
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
        self._cuts = cuts
        self._parts = [(s, tokenizer.encode(text[s:e])) for s, e in regions_between_gaps(text, start, end)]
        self._total = sum(len(ids) for _, ids in self._parts)
        self._head = (start, start, 0, 0)

    @cached_property
    def ends(self) -> NDArray[np.int64]:  # type: ignore[override]
        return _joined([_shifted(self._tokenizer.ends(ids), start) for start, ids in self._parts])

    @cached_property
    def _ends(self) -> memoryview[int]:  # type: ignore[override]
        return memoryview(self.ends)  # type: ignore[arg-type]

    def count(self, start: int, end: int) -> int:
        if start == self._start and end == self._end:
            return self._total
        first, tokens_before, head = self._head[1:] if self._head[0] == start else self._find_head(start)
        text, ends, cuts = self._text, self._ends, self._cuts
        if first > end or end > self._end:
            return self._count(text[start:end])
        last, after = first, bisect_right(ends, end, tokens_before)
        while after > tokens_before:
            place = ends[after - 1]
            verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
            if verdict == ALWAYS or (verdict and after_black(text, place)):
                last = place
                break
            after -= 1
        tokens = head + after - tokens_before
        return tokens + self._count(text[last:end]) if last < end else tokens

    def reach(self, start: int, budget: int) -> int:
        if start == self._start and budget >= self._total:
            return self._end
        first, tokens_before, head = self._head[1:] if self._head[0] == start else self._find_head(start)
        if first > self._end:
            return super().reach(start, budget)
        text, ends, cuts = self._text, self._ends, self._cuts
        last = tokens_before + max(budget - head, 1) - 1
        # A piece that does not fit whole may still fit without its last characters.
        for place in ends[last : last + _PIECE_TOKENS]:
            verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
            if verdict == ALWAYS or (verdict and after_black(text, place)):
                return place
        return ends[last] if last < len(ends) else len(text)

    def _find_head(self, start: int) -> tuple[int, int, int]:
        """The first strong cut from `start` on, the tokens before it, and those of the slice up to it.

        A cut beyond the text stands for one that is too far away to be looked for.
        """
        text, ends, cuts = self._text, self._ends, self._cuts
        found = (len(text) + 1, 0, 0)
        if start == self._start:
            found = (start, 0, 0)
        else:
            at = bisect_left(ends, start)
            for place in ends[at : at + _PIECE_TOKENS]:
                at += 1
                verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
                if verdict == ALWAYS or (verdict and after_black(text, place)):
                    # A character can end several tokens.
                    at = bisect_right(ends, place, at)
                    found = (place, at, self._count(text[start:place]) if start < place else 0)
                    break
        self._head = (start, *found)
        return found


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
