"""Rules: which chunker cuts which document of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from transforms.chunkers import Chunker
from transforms.errors import ConfigError
from transforms.fingerprint import fingerprint
from transforms.path_patterns import end_of_path, path_regex, whole_path
from transforms.records import DeadLetter, Document, DocumentChunks, path_of


class Rule(BaseModel):
    """A chunker, and what the documents are that it cuts; without any condition, all of them.

    Args:
        chunker: What cuts them.
        media_type: Their media type; `text/*` is every text.
        source: The end of their path or URI, from the beginning of a name on, as a pattern: `*.md`, `manuals/`,
            `manuals/**/*.md`.
        metadata: Values that their metadata have by these names.

    Raises:
        ConfigError: If a setting is unknown or refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    chunker: Chunker
    media_type: str | None = Field(default=None, min_length=1)
    source: str | None = Field(default=None, min_length=1)
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, ("rules", *first["loc"])))
            raise ConfigError(name, first["input"], first["msg"].removeprefix("Value error, ")) from None

    def takes(self, document: Document) -> bool:
        """Whether a document meets all of its conditions."""
        return (
            (self._media_type is None or bool(self._media_type.fullmatch(document.media_type)))
            and (self._source is None or bool(self._source.search(path_of(document))))
            and all(document.metadata.get(name) == value for name, value in self.metadata.items())
        )

    def conditions(self) -> str:
        """Its conditions in words."""
        said = [f"{name} {value}" for name in ("media_type", "source") if (value := getattr(self, name))]
        said += [f"{name} {value}" for name, value in self.metadata.items()]
        return ", ".join(said) or "every document"

    @field_validator("media_type", "source", mode="after")
    @classmethod
    def _is_pattern(cls, value: str | None) -> str | None:
        if value:
            path_regex(value)
        return value

    @cached_property
    def _media_type(self) -> re.Pattern[str] | None:
        return whole_path(self.media_type.lower()) if self.media_type else None

    @cached_property
    def _source(self) -> re.Pattern[str] | None:
        return end_of_path(self.source) if self.source else None

    def record(self) -> dict[str, object]:
        """The rule as a manifest keeps it."""
        return {
            **self.model_dump(mode="json", include={"media_type", "source", "metadata"}),
            "chunker": self.chunker.name,
            "chunker_hash": self.chunker.fingerprint(),
            "chunker_settings": self.chunker.record.settings,
        }


class Rules:
    """An ordered list of rules: the first that takes a document has it cut, the default chunker all others.

    Args:
        default: What cuts the documents that no rule takes.
        rules: The rules, in order.
    """

    def __init__(self, default: Chunker, rules: Sequence[Rule] = ()) -> None:
        self.default = default
        self.rules = tuple(rules)

    @property
    def chunkers(self) -> list[Chunker]:
        """All chunkers, each once, the default first."""
        every = (self.default, *(rule.chunker for rule in self.rules))
        return list({chunker.fingerprint(): chunker for chunker in every}.values())

    def chunker_of(self, document: Document) -> Chunker:
        """What cuts a document."""
        return next((rule.chunker for rule in self.rules if rule.takes(document)), self.default)

    def why(self, document: Document) -> str:
        """By which rule a document is cut, in words."""
        for number, rule in enumerate(self.rules, 1):
            if rule.takes(document):
                return f"by rule {number} ({rule.conditions()})"
        return "by no rule"

    def chunk_document(self, document: Document) -> DocumentChunks:
        """All chunks of a document, with what the ledger says of it.

        Args:
            document: The document.

        Raises:
            ChunkingError: If the document cannot be cut.
        """
        return self.chunker_of(document).chunk_document(document)

    def skipped(self, letter: DeadLetter) -> DocumentChunks | None:
        """What the ledger says of a document without a text, such as an image, that its chunker skips anyway.

        Args:
            letter: What parsing it has given.

        Returns:
            None if its chunker would not skip it: then it has failed.
        """
        if letter.stage != "parse":
            return None
        document = Document(letter.document_id, "", letter.media_type or "", source=letter.source)
        return self.chunker_of(document).skipped(document)

    def records(self) -> list[dict[str, object]]:
        """The rules as a manifest keeps them."""
        return [rule.record() for rule in self.rules]

    def fingerprint(self) -> str:
        """16 hex digits that change with every rule, their order and the default."""
        return fingerprint({"rules": self.records(), "default": self.default.fingerprint()})
