"""The inner loops of parsing as compiled code, where this installation has them."""

from __future__ import annotations

from pathlib import Path

from transforms.compiled import compiled_loops

native = compiled_loops(Path(__file__).parent)
