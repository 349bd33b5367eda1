"""Fingerprints: short digests that change when, and only when, what they stand for may change."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from transforms.provenance import canonical_json


def fingerprint(facts: Mapping[str, object]) -> str:
    """First 16 hex digits of the SHA-256 of the canonical JSON of some facts.

    Args:
        facts: JSON-able facts; their order does not matter.
    """
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:16]


def text_digest(text: bytes) -> str:
    """SHA-256 of a text in UTF-8, in hex."""
    return hashlib.sha256(text).hexdigest()


def chunk_id(document_id: str, chunker_hash: str, digest: str, ordinal: int) -> str:
    """Id of a chunk, 32 hex digits.

    It says nothing of where the chunk lies, so an edit elsewhere in the document leaves it as it is.

    Args:
        document_id: Id of its document.
        chunker_hash: Fingerprint of its chunker.
        digest: The `text_digest` of its text.
        ordinal: How many chunks before it in the document have the same text.
    """
    return hashlib.sha256(f"{document_id}\n{chunker_hash}\n{digest}\n{ordinal}".encode()).hexdigest()[:32]
