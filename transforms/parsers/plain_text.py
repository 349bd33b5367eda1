"""Plain text: nothing but its characters."""

from __future__ import annotations

from collections.abc import Mapping

from transforms.records import Block


def parse_plain_text(text: str) -> tuple[tuple[Block, ...], Mapping[str, object]]:
    """Blocks and metadata of a plain text, which are none; its structure is for the chunker to find."""
    return (), {}
