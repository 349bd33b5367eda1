"""Texts of chosen pieces, for property tests."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st


def soup(
    pieces: Sequence[str], *, min_size: int = 0, max_size: int = 40, between: str = ""
) -> st.SearchStrategy[str]:
    """Texts of pieces in any order.

    Drawn as one string, a private character for each piece: to draw them one by one takes twice as long.

    Args:
        pieces: The pieces, the simplest first.
        min_size: Fewest pieces of a text.
        max_size: Most pieces of a text.
        between: What stands between two pieces.
    """
    stand_ins = {0xE000 + place: piece for place, piece in enumerate(pieces)}
    drawn = st.text("".join(map(chr, stand_ins)), min_size=min_size, max_size=max_size)
    return drawn.map(lambda text: between.join(text).translate(stand_ins))
