"""The inner loops of chunking as compiled code, where this installation has them.

Whatever is compiled has a twin in Python, which is used where it is missing and says what is right: the chunks are
the same. `CHUNKMILL_NATIVE=0` leaves the compiled code aside.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType


def loops() -> str:
    """Which loops are in use, as the report of a run tells it."""
    return "compiled loops" if native else "loops in Python"


def _compiled() -> ModuleType | None:
    if os.environ.get("CHUNKMILL_NATIVE") == "0":
        return None
    try:
        return import_module("transforms.chunkers.native")
    except ModuleNotFoundError:
        return None


native = _compiled()
