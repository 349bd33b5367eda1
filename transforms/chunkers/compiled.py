"""The inner loops of chunking as compiled code, where this installation has them."""

from __future__ import annotations

from pathlib import Path

from transforms.compiled import compiled_loops
from transforms.parsers import compiled as parsers

native = compiled_loops(Path(__file__).parent)


def loops() -> str:
    """Which loops are in use, those of parsing among them, as the report of a run tells it."""
    return "compiled loops" if native and parsers.native else "loops in Python"
