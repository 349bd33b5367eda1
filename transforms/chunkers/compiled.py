"""The inner loops of chunking as compiled code, where this installation has them.

Whatever is compiled has a twin in Python, which is used where it is missing and says what is right: the chunks are
the same. `CHUNKMILL_NATIVE=0` leaves the compiled code aside.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zlib import crc32


def loops() -> str:
    """Which loops are in use, as the report of a run tells it."""
    return "compiled loops" if native else "loops in Python"


def _compiled() -> ModuleType | None:
    if os.environ.get("CHUNKMILL_NATIVE") == "0":
        return None
    try:
        module = import_module("transforms.chunkers.native")
    except ModuleNotFoundError:
        return None
    if module.source_crc != crc32(Path(__file__).with_name("native.pyx").read_bytes()):
        raise ImportError("native.pyx is not what was compiled: pip install --no-deps -e . compiles it anew")
    return module


native = _compiled()
