"""The inner loops of chunking as compiled code, where this installation has them."""

from __future__ import annotations

from pathlib import Path

from transforms.compiled import compiled_loops

native = compiled_loops(Path(__file__).parent)


def loops() -> str:
    """Which loops are in use, as the report of a run tells it."""
    return "compiled loops" if native else "loops in Python"
