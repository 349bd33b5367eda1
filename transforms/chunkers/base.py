"""What every chunking strategy is: frozen settings with a fingerprint, and one way from a document to its chunks."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from transforms.chunkers.context import Context, ContextKind
from transforms.chunkers.finishing import finish
from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.errors import ChunkingError, ConfigError
from transforms.fingerprint import fingerprint
from transforms.parsers import blocks_of
from transforms.provenance import ChunkerRecord, canonical_json
from transforms.records import Chunk, Document, DocumentChunks
from transforms.tokenizers import Engine, Tokenizer, get_tokenizer, identity_of

# Settings that say nothing in a chunker that is used by another one.
_OF_THE_OUTERMOST = ("context", "context_in_budget")


class Chunker(BaseModel, ABC):
    """A chunking strategy with its settings, which are checked when it is made and never change.

    A strategy says in `cut` which slices of a document become chunks; ids, headings, lines and all else that a
    chunk carries are added here, the same way for every strategy.

    Args:
        chunk_size: Longest chunk, in tokens of `tokenizer`; at least 1.
        chunk_overlap: Most tokens that neighbours share: tokens (int), or a share of `chunk_size` (float in [0, 1)).
        tokenizer: What counts tokens: `cl100k_base`, `o200k_base`, another encoding of tiktoken, `character`, or
            the path or URI of a `tokenizer.json`. From Python, any object that is a `Tokenizer` too.
        context: What to tell before a chunk of where it stands: `none`; `headings`, its path (headings, scopes of a
            program, the path in a JSON text) and the header of the table it goes on with; or `full`, the title
            of the document before those.
        context_in_budget: Whether context, a blank line and text together stay within `chunk_size`.
        engine: What encodes for tiktoken's encodings. The ids are the same, so it is not in the fingerprint.

    Raises:
        ConfigError: If a setting is unknown or refused; it names the setting and the value.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, validate_default=True
    )

    name: ClassVar[str]
    VERSION: ClassVar[int] = 1
    # Settings that say what neighbours share, of which one may be positive; none if they share nothing.
    overlap_settings: ClassVar[tuple[str, ...]] = ("chunk_overlap",)

    chunk_size: int = Field(default=512, ge=1)
    chunk_overlap: int = 0
    tokenizer: str | Tokenizer = "cl100k_base"
    context: ContextKind = "headings"
    context_in_budget: bool = False
    engine: Engine = "auto"

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _config_error(type(self), error) from None

    @field_validator("*", mode="before")
    @classmethod
    def _no_bool(cls, value: object, info: ValidationInfo) -> object:
        # bool is an int to pydantic, and 512 written as True is a slip.
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in (int, int | None):
            raise ValueError("must be a number")
        return value

    @field_validator("chunk_overlap", mode="before")
    @classmethod
    def _share_to_tokens(cls, value: object, info: ValidationInfo) -> object:
        """A share of `chunk_size` becomes tokens, so that equal settings have equal fingerprints."""
        if isinstance(value, str) and not value.strip().lstrip("+-").isdigit():
            value = float(value)
        if not isinstance(value, float):
            return value
        if not (math.isfinite(value) and 0 <= value < 1):
            raise ValueError("as a share of chunk_size it must be in [0, 1)")
        # Exact in decimal: 0.29 of 100 is 29, though 0.29 * 100 is a little less.
        return int(Decimal(str(value)) * info.data.get("chunk_size", 1))

    @field_validator("tokenizer", mode="after")
    @classmethod
    def _known_tokenizer(cls, value: str | Tokenizer) -> str | Tokenizer:
        identity_of(value)
        return value

    @field_validator("context_in_budget", mode="after")
    @classmethod
    def _no_context_takes_nothing(cls, value: bool, info: ValidationInfo) -> bool:
        # So that settings that cannot differ in what they give have one fingerprint.
        return value and info.data.get("context") != "none"

    @model_validator(mode="after")
    def _makes_progress(self) -> Self:
        if not 0 <= self.chunk_overlap < self.chunk_size:
            raise ConfigError(
                "chunk_overlap",
                self.chunk_overlap,
                f"must be at least 0 and less than chunk_size={self.chunk_size}",
            )
        return self

    @model_validator(mode="after")
    def _one_overlap(self) -> Self:
        if self.chunk_overlap and not self.overlap_settings:
            message = f"chunks of {self.name} share nothing with their neighbours"
            raise ConfigError("chunk_overlap", self.chunk_overlap, message)
        given = [(key, value) for key in self.overlap_settings if (value := getattr(self, key))]
        if len(given) > 1:
            first, second = given
            raise ConfigError(*second, f"cannot be given beside {first[0]}={first[1]}")
        return self

    @abstractmethod
    def cut(self, measured: Measured, start: int, end: int) -> Iterable[Piece]:
        """The slices of [start, end) that become chunks, in order.

        Args:
            measured: The document.
            start: First character to cut, in code points.
            end: End of what is to be cut.
        """

    def chunk(self, document: Document) -> list[Chunk]:
        """All chunks of a document, in order; none if it is blank.

        Args:
            document: The document.

        Raises:
            ChunkingError: If the document cannot be cut.
        """
        return list(self.chunk_document(document).chunks)

    def chunk_document(self, document: Document) -> DocumentChunks:
        """All chunks of a document, with what the ledger says of it.

        Args:
            document: The document.

        Raises:
            ChunkingError: If the document cannot be cut.
        """
        if skipped := self.skipped(document):
            return skipped
        text, record = document.text, self.record
        if text.isspace() or not text:
            return DocumentChunks(document, (), "blank", record)
        if not (document.digest or text.isascii()):
            self._refuse_surrogates(document)
        # What pydantic holds is asked once: an attribute of a model takes four times as long as one of another object.
        counter, in_budget = self.counter, self.context_in_budget
        measured = Measured(document, blocks_of(document), counter)
        if not measured.title:
            measured.title = self.title_in(measured)
        context = Context(measured, self.context, self.chunk_size, in_budget, counter)
        if in_budget:
            measured.room = context.room
        pieces = list(self.cut(measured, measured.start, measured.end))
        chunks, lost = finish(measured, pieces, record, context)
        removed = measured.removed_black() if measured.removed else 0
        measured.let_go()
        if chunks or lost:
            return DocumentChunks(document, chunks, "ok", record, lost, None, measured.notes, removed)
        reason = "nothing is left of it"
        return DocumentChunks(document, (), "skipped", record, 0, reason, measured.notes, removed)

    def skipped(self, document: Document) -> DocumentChunks | None:
        """What the ledger says of a document that this chunker skips, whatever its text; None if it does not.

        Args:
            document: The document.
        """
        return None

    def title_in(self, measured: Measured) -> str | None:
        """The title of a document that came without one, for the context of its chunks; None unless it is told.

        Args:
            measured: The document.
        """
        return None

    def _refuse_surrogates(self, document: Document) -> None:
        try:
            document.text.encode()
        except UnicodeEncodeError as error:
            raise ChunkingError(
                document.document_id,
                self.name,
                "surrogate",
                f"half a surrogate pair at {error.start}; replace it, as reading a document does",
            ) from None

    @property
    def makes_children(self) -> bool:
        """Whether chunks stand inside others, which only the outermost chunker can have."""
        return False

    @cached_property
    def counter(self) -> Tokenizer:
        """The tokenizer itself, loaded when first needed."""
        return (
            get_tokenizer(self.tokenizer, self.engine) if isinstance(self.tokenizer, str) else self.tokenizer
        )

    @cached_property
    def record(self) -> ChunkerRecord:
        """The chunker as the table remembers it."""
        name, digest = identity_of(self.tokenizer)
        settings = {
            key: _plain(value) for key, value in self.counting().items() if key not in ("engine", "tokenizer")
        }
        return ChunkerRecord(
            name=self.name,
            version=self.VERSION,
            hash=fingerprint(
                {
                    "strategy": self.name,
                    "version": self.VERSION,
                    "settings": settings,
                    "tokenizer": name,
                    "vocabulary": digest,
                }
            ),
            settings=canonical_json({**settings, "tokenizer": name}),
            tokenizer=name,
            vocabulary_digest=digest,
            chunk_size=self.chunk_size,
        )

    def settings(self) -> dict[str, Any]:
        """Every setting by its name."""
        return {key: getattr(self, key) for key in type(self).model_fields}

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: those to which the others leave nothing to say are at a default."""
        return self.settings()

    def fingerprint(self) -> str:
        """16 hex digits that change when, and only when, the chunks of some document may."""
        return self.record.hash

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers load tokenizers themselves; only the settings travel.
        return _rebuild, (type(self), self.settings())


def taken_over(
    settings: Mapping[str, Any], kind: type[Chunker], own: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Those settings of a chunker that one of another strategy, used by it, takes over.

    Args:
        settings: Settings of the outer chunker.
        kind: Strategy of the inner one.
        own: Settings that the inner one has of its own.
    """
    overlaps = bool(kind.overlap_settings) and not any((own or {}).get(key) for key in kind.overlap_settings)
    return {key: settings[key] for key in Chunker.model_fields if overlaps or key != "chunk_overlap"}


def nested_chunker(value: object, info: ValidationInfo) -> object:
    """A chunker used by another one, from its name or a table of its settings.

    Args:
        value: Name, table with a `name`, or a chunker, which is taken as it is.
        info: The settings of the outer chunker so far; what the inner one does not set is taken from them.

    Raises:
        ConfigError: If the inner chunker refuses its settings, or could pass the outer budget.
    """
    # The registry imports every strategy, and so this module.
    from transforms.chunkers import CHUNKERS, get_chunker

    inherited = {key: info.data[key] for key in Chunker.model_fields if key in info.data}
    if len(inherited) < len(Chunker.model_fields):
        raise ValueError("cannot be made, since another setting is refused")
    own = {"name": value} if isinstance(value, str) else value
    if isinstance(own, Mapping):
        if not isinstance(own.get("name"), str):
            raise ValueError("a table of settings needs the name of a strategy as `name`")
        kind = CHUNKERS.get(own["name"], Chunker)
        try:
            value = get_chunker(**{**taken_over(inherited, kind, own), **own})
        except ConfigError as error:
            if error.setting == "chunker":
                raise ConfigError(str(info.field_name), error.value, error.message) from None
            if error.setting.partition(".")[0] in own:
                raise ConfigError(f"{info.field_name}.{error.setting}", error.value, error.message) from None
            raise
        for setting in _OF_THE_OUTERMOST:
            if setting in own and getattr(value, setting) != inherited[setting]:
                message = "is for the outermost chunker to say, which tells the context of all chunks"
                raise ConfigError(f"{info.field_name}.{setting}", own[setting], message)
    if isinstance(value, Chunker):
        if value.makes_children:
            raise ConfigError(str(info.field_name), value.name, "cuts children, as only the outermost may")
        if value.chunk_size > inherited["chunk_size"]:
            limit = inherited["chunk_size"]
            raise ConfigError(
                f"{info.field_name}.chunk_size", value.chunk_size, f"is larger than chunk_size={limit}"
            )
        if identity_of(value.tokenizer) != identity_of(inherited["tokenizer"]):
            raise ConfigError(
                f"{info.field_name}.tokenizer", value.tokenizer, "must be the tokenizer of the chunker"
            )
    return value


def _rebuild(kind: type[Chunker], settings: dict[str, Any]) -> Chunker:
    return kind(**settings)


def _plain(value: object) -> object:
    """A setting as JSON: a nested chunker by its own record."""
    if isinstance(value, Chunker):
        return {
            "strategy": value.name,
            "version": value.VERSION,
            "settings": {
                key: setting
                for key, setting in json.loads(value.record.settings).items()
                if key not in _OF_THE_OUTERMOST
            },
        }
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _config_error(kind: type[Chunker], error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return cause
    # Of a choice of types the place names each one too.
    setting = ".".join(
        str(part) for place, part in enumerate(first["loc"]) if not place or isinstance(part, int)
    )
    setting = setting or kind.name
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return ConfigError(setting, first["input"], f"{kind.name} has no such setting; it has {known}")
    return ConfigError(setting, first["input"], first["msg"].removeprefix("Value error, "))
