"""Lines: where they are broken, found at the speed of memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LINE_FEED = ord("\n")


def line_feeds(text: str) -> NDArray[np.intp]:
    """Where the line feeds of a text are, in code points.

    Args:
        text: The text.
    """
    units = (
        np.frombuffer(text.encode(), np.uint8)
        if text.isascii()
        else np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    )
    feeds: NDArray[np.intp] = (units == _LINE_FEED).nonzero()[0]
    return feeds
