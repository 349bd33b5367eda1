"""Exact token counts of slices of one text, which is tokenised once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transforms.chunkers import compiled
from transforms.chunkers.edges import white_end, white_start
from transforms.records import Span
from transforms.tokenizers.base import Tokenizer
from transforms.tokenizers.characters import CharacterTokenizer
from transforms.tokenizers.encodings import REMEMBERED_LENGTH, EncodingTokenizer
from transforms.tokenizers.strong_cuts import (
    ALWAYS,
    CLASSES,
    WHITE_CLASSES,
    StrongCuts,
    after_black,
    character_class,
    strong_cuts,
)

# tiktoken panics on 1,000,000 white-space characters in a row, and nobody wants a chunk that spans this many.
HARD_GAP = 100_000
# Tokens that are looked at for a strong cut: a word and then some. Beyond that a direct count is as cheap.
_PIECE_TOKENS = 64
_ID = np.dtype(np.uint32)


class Ruler(Protocol):
    """Token counts of slices of one text."""

    @property
    def is_additive(self) -> bool:
        """Whether a text has the tokens before a blank line and those after it, if it goes on without a space."""

    @property
    def ends(self) -> NDArray[np.int32]:
        """End of each token of the whole text, in code points, as in `Tokenizer.boundaries`."""

    def count(self, start: int, end: int) -> int:
        """Tokens of the slice."""

    def reach(self, start: int, budget: int) -> int:
        """About the furthest end of a slice from `start` within `budget` tokens, rather too far than too near."""

    def back(self, end: int, budget: int) -> int:
        """About the earliest start of a slice up to `end` within `budget` tokens."""


def ruler(text: str, tokenizer: Tokenizer, regions: list[Span]) -> Ruler:
    """The cheapest exact ruler for a text.

    Args:
        text: The text.
        tokenizer: What counts.
        regions: The parts of the text that are measured, without the white space around and between them.
    """
    if isinstance(tokenizer, EncodingTokenizer):
        if counter := _counter(tokenizer):
            found: Ruler = counter.ruler(text, regions)
            return found
        if (cuts := strong_cuts(tokenizer.name)) is not None:
            return PrefixRuler(text, tokenizer, cuts, regions)
    if isinstance(tokenizer, CharacterTokenizer):
        return _CharacterRuler(text)
    return _CountingRuler(text, tokenizer, regions)


@lru_cache
def _counter(tokenizer: EncodingTokenizer) -> Any:
    """What the compiled rulers of all texts share; None where the encoding can be cut nowhere."""
    cuts = strong_cuts(tokenizer.name)
    if not compiled.native or cuts is None:
        return None
    return compiled.native.Counter(
        # No token has 256 characters, and a table of bytes stays in the cache.
        tokenizer.begun.astype(np.uint8),
        tokenizer.encode_packed,
        tokenizer.count,
        tokenizer.known_counts,
        REMEMBERED_LENGTH,
        CLASSES,
        WHITE_CLASSES,
        character_class,
        cuts.verdicts,
        _PIECE_TOKENS,
    )


class _CharacterRuler:
    is_additive = True

    def __init__(self, text: str) -> None:
        self._length = len(text)

    @cached_property
    def ends(self) -> NDArray[np.int32]:
        return np.arange(1, self._length + 1, dtype=np.int32)

    def count(self, start: int, end: int) -> int:
        return end - start

    def reach(self, start: int, budget: int) -> int:
        return min(start + budget, self._length)

    def back(self, end: int, budget: int) -> int:
        return max(end - budget, 0)


class _CountingRuler:
    """Counts each slice anew; the token boundaries of the whole text are a hint where to look."""

    is_additive = False

    def __init__(self, text: str, tokenizer: Tokenizer, regions: Sequence[Span]) -> None:
        self._text = text
        self._count = tokenizer.count
        self.ends = _joined(
            [_shifted(tokenizer.boundaries(text[start:end]), start) for start, end in regions]
        )
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


class PrefixRuler:
    """Counts by subtraction between strong cuts, and anew only the word or the punctuation at either end.

    A strong cut is always the end of a token, so only those are looked at. Where tokens end is not asked of a text
    that fits as a whole.
    """

    is_additive = True

    def __init__(
        self,
        text: str,
        tokenizer: EncodingTokenizer,
        cuts: StrongCuts,
        regions: Sequence[Span],
    ) -> None:
        self._text = text
        self._regions = regions
        self._start, self._end = (regions[0][0], regions[-1][1]) if regions else (0, 0)
        self._tokenizer = tokenizer
        self._count = tokenizer.count
        self._cuts = cuts
        self._ids = [tokenizer.encode_packed(text[start:end]) for start, end in regions]
        self._total = sum(map(len, self._ids)) // _ID.itemsize
        # Where tokens end, once that is asked.
        self._array: NDArray[np.int32] | None = None
        self._ends: memoryview[int] | tuple[()] = ()
        # The slice start looked at last: it, the first strong cut from there on, the tokens before that cut, and
        # those from the start to it. What lies before the first cut is measured from the start.
        self._head = (self._start, self._start, 0, 0)

    @property
    def ends(self) -> NDArray[np.int32]:
        """End of each token of the whole text, in code points."""
        if self._array is None:
            tokens = self._tokenizer.ends
            parts = [
                _shifted(tokens(np.frombuffer(ids, _ID)), start)
                for ids, (start, _) in zip(self._ids, self._regions, strict=True)
            ]
            self._array = _joined(parts)
            self._ends = memoryview(self._array)  # type: ignore[arg-type]
        return self._array

    def count(self, start: int, end: int) -> int:
        """Tokens of the slice."""
        if end == self._end and start == self._start:
            return self._total
        head = self._head if self._head[0] == start else self._find_head(start)
        _, first, before, tokens = head
        text, cuts = self._text, self._cuts
        ends = self._ends or memoryview(self.ends)  # type: ignore[arg-type]
        if first > end or end > self._end:
            return self._count(text[start:end])
        after = bisect_right(ends, end, before)
        while after > before:
            place = ends[after - 1]
            verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
            if verdict == ALWAYS or (verdict and after_black(text, place)):
                tokens += after - before
                return tokens + self._count(text[place:end]) if place < end else tokens
            after -= 1
        return tokens + self._count(text[first:end]) if first < end else tokens

    def reach(self, start: int, budget: int) -> int:
        """About the furthest end of a slice from `start` within `budget` tokens, rather too far than too near."""
        if start == self._start and budget >= self._total:
            return self._end
        head = self._head if self._head[0] == start else self._find_head(start)
        _, first, before, tokens = head
        text, cuts = self._text, self._cuts
        ends = self._ends or memoryview(self.ends)  # type: ignore[arg-type]
        if first > self._end:
            last = bisect_right(ends, start) + budget - 1
            return ends[last] if last < len(ends) else len(text)
        last = before + max(budget - tokens, 1) - 1
        # A piece that does not fit whole may still fit without its last characters.
        for index in range(last, min(last + _PIECE_TOKENS, len(ends))):
            place = ends[index]
            verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
            if verdict == ALWAYS or (verdict and after_black(text, place)):
                return place
        return ends[last] if last < len(ends) else len(text)

    def back(self, end: int, budget: int) -> int:
        """About the earliest start of a slice up to `end` within `budget` tokens."""
        ends = self._ends or memoryview(self.ends)  # type: ignore[arg-type]
        first = bisect_right(ends, end) - budget - 1
        return ends[first] if first >= 0 else 0

    def _find_head(self, start: int) -> tuple[int, int, int, int]:
        """The head of slices from `start` on; a cut beyond the text stands for one too far away to be looked for."""
        text, cuts = self._text, self._cuts
        ends = self._ends or memoryview(self.ends)  # type: ignore[arg-type]
        head = (start, len(text) + 1, 0, 0)
        if start == self._start:
            head = (start, start, 0, 0)
        else:
            at = bisect_left(ends, start)
            for index in range(at, min(at + _PIECE_TOKENS, len(ends))):
                place = ends[index]
                verdict = ALWAYS if place == self._end else cuts[text[place - 1 : place + 1]]
                if verdict == ALWAYS or (verdict and after_black(text, place)):
                    # A character can end several tokens.
                    before = bisect_right(ends, place, index + 1)
                    head = (start, place, before, self._count(text[start:place]) if start < place else 0)
                    break
        self._head = head
        return head


def _shifted(ends: Sequence[int] | NDArray[np.integer[Any]], start: int) -> NDArray[np.int32]:
    array = np.asarray(ends, np.int32)
    return array + start if start else array


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int32)


def regions_between_gaps(text: str, start: int, end: int) -> list[Span]:
    """The parts of a slice between its hard gaps: runs of `HARD_GAP` and more white-space characters."""
    if 0 < end - start < HARD_GAP:
        return [(start, end)]
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


def black(text: str) -> int:
    """Characters of a text that are not white space."""
    return 0 if not text or text.isspace() else sum(map(len, text.split()))
