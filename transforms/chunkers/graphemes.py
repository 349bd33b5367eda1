"""Extended grapheme clusters (UAX #29): the characters a reader sees, which no cut may divide."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache

import regex

# A flag before a flag by itself: `\X` looks back from each regional indicator to the first of their run.
_CLUSTER = regex.compile(r"\p{Regional_Indicator}{2}(?=\p{Regional_Indicator})|\X")
_JOINS_WHAT_FOLLOWS = regex.compile(r"[\p{M}\p{GCB=Extend}\p{GCB=ZWJ}]")
_REGIONAL_INDICATOR = regex.compile(r"\p{Regional_Indicator}")


class Graphemes:
    """Cluster edges of one text, found only where somebody asks.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._edges: list[int] = []

    def is_edge(self, position: int) -> bool:
        """Whether a cut at `position` divides no cluster."""
        text = self._text
        if not 0 < position < len(text):
            return True
        verdict = _edge_between(text[position - 1], text[position])
        return self.floor(position) == position if verdict is None else verdict

    def floor(self, position: int) -> int:
        """Last cluster edge at or before `position`."""
        return position if self._is_plain_edge(position) else self._run(position, bisect_right, -1)

    def ceil(self, position: int) -> int:
        """First cluster edge at or after `position`."""
        return position if self._is_plain_edge(position) else self._run(position, bisect_left, 0)

    def _is_plain_edge(self, position: int) -> bool:
        text = self._text
        if not 0 < position < len(text):
            return True
        return _edge_between(text[position - 1], text[position]) is True

    def _run(self, position: int, side: object, shift: int) -> int:
        """Look `position` up among the edges of the run of characters around it that may hang together."""
        edges = self._edges
        if not edges or not edges[0] < position < edges[-1]:
            text, start, end = self._text, position, position
            while start > 0 and not self._is_plain_edge(start):
                start -= 1
            while end < len(text) and not self._is_plain_edge(end):
                end += 1
            # A long run is cut up once, however often it is asked about.
            edges = self._edges = [start, *(match.end() for match in _CLUSTER.finditer(text, start, end))]
        return edges[side(edges, position) + shift]  # type: ignore[operator]


@lru_cache(1 << 16)
def _edge_between(left: str, right: str) -> bool | None:
    """Whether two neighbours are divided by a cluster edge; None if that depends on what comes before them."""
    divided = len(_CLUSTER.findall(left + right)) == 2
    if divided:
        # A joiner or a mark can tie what follows to what precedes (emoji sequences, Indic conjuncts).
        return None if _JOINS_WHAT_FOLLOWS.match(left) and not _is_simple(right) else True
    return None if _REGIONAL_INDICATOR.match(left) else False


def _is_simple(character: str) -> bool:
    """Whether no rule ties `character` to what precedes it through a joiner: neither pictograph nor letter."""
    return not regex.match(r"[\p{Extended_Pictographic}\p{L}]", character)
