"""Fingerprints: short digests that change when, and only when, what they stand for may change."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from typing_extensions import Buffer

from transforms.provenance import canonical_json

# A copy costs a third of what a new one does.
_NOTHING = hashlib.sha256()


def fingerprint(facts: Mapping[str, object]) -> str:
    """First 16 hex digits of the SHA-256 of the canonical JSON of some facts.

    Args:
        facts: JSON-able facts; their order does not matter.
    """
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:16]


class Digest(NamedTuple):
    """What tells a content from all others.

    Args:
        sha256: SHA-256 of its bytes, in hex.
        size: Its bytes.
    """

    sha256: str
    size: int


def digest_of(content: str | Buffer) -> Digest:
    """The digest of some bytes, or of a text as UTF-8, halves of surrogate pairs included.

    Args:
        content: The bytes or the text.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return Digest(hashlib.sha256(data).hexdigest(), memoryview(data).nbytes)


def text_digest(text: bytes) -> str:
    """SHA-256 of a text in UTF-8, in hex."""
    digest = _NOTHING.copy()
    digest.update(text)
    return digest.hexdigest()


def chunk_id(document_id: str, chunker_hash: str, digest: str, ordinal: int) -> str:
    """Id of a chunk, 32 hex digits.

    It says nothing of where the chunk lies, so an edit elsewhere in the document leaves it as it is.

    Args:
        document_id: Id of its document.
        chunker_hash: Fingerprint of its chunker.
        digest: The `text_digest` of its text.
        ordinal: How many chunks before it in the document have the same text.
    """
    return _id(_begun(document_id, chunker_hash), digest, ordinal)


def chunk_ids(document_id: str, chunker_hash: str) -> Callable[[bytes], str]:
    """Gives the ids of the chunks of one document, from their texts in UTF-8 and in their order; see `chunk_id`.

    Args:
        document_id: Id of the document.
        chunker_hash: Fingerprint of the chunker.
    """
    begun = _begun(document_id, chunker_hash)
    seen: dict[str, int] = {}

    def of(text: bytes) -> str:
        digest = text_digest(text)
        ordinal = seen[digest] = seen.get(digest, -1) + 1
        return _id(begun, digest, ordinal)

    return of


def _begun(document_id: str, chunker_hash: str) -> hashlib._Hash:
    """What the ids of all chunks of a document begin with."""
    begun = _NOTHING.copy()
    begun.update(f"{document_id}\n{chunker_hash}\n".encode())
    return begun


def _id(begun: hashlib._Hash, digest: str, ordinal: int) -> str:
    rest = begun.copy()
    rest.update(f"{digest}\n{ordinal}".encode())
    return rest.hexdigest()[:32]
