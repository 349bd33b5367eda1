"""The errors of Chunkmill, by how far each one reaches.

A bad setting stops the launch, a bad document becomes a dead letter, anything else is a bug and fails loudly.
"""

from __future__ import annotations


class ChunkmillError(Exception):
    """Base of every error that Chunkmill raises on purpose."""


class ConfigError(ChunkmillError, ValueError):
    """A setting that no run can start with.

    Args:
        setting: Name of the setting, as the user wrote it.
        value: The refused value.
        message: What is wrong and what to do.
    """

    def __init__(self, setting: str, value: object, message: str) -> None:
        super().__init__(setting, value, message)
        self.setting = setting
        self.value = value
        self.message = message

    def __str__(self) -> str:
        return f"{self.setting}={self.value!r}: {self.message}"


class CommitError(ChunkmillError):
    """A run that cannot be committed; the table is as it was before."""


class DocumentError(ChunkmillError):
    """A document that cannot be processed; it becomes a dead letter and the job goes on.

    Args:
        reason: Short code of the kind of fault, such as `not_text`.
        message: What is wrong with this document.
    """

    stage = "document"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class ReadError(DocumentError):
    """A source, or a row of it, that cannot be read."""

    stage = "read"


class ParseError(DocumentError):
    """Bytes that cannot be turned into a document's text."""

    stage = "parse"


class ChunkingError(DocumentError):
    """A document that cannot be cut.

    Args:
        document_id: Id of the document.
        strategy: Name of the chunking strategy.
        reason: Short code of the kind of fault.
        message: What is wrong.
    """

    stage = "chunk"

    def __init__(self, document_id: str, strategy: str, reason: str, message: str) -> None:
        super().__init__(reason, f"{strategy} cannot cut document {document_id!r}: {message}")
        self.args = (document_id, strategy, reason, message)
