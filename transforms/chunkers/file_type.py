"""The strategy `file_type`: each document of a source tree by what it is, and those not worth it not at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from transforms.chunkers.base import Chunker, nested_chunker, taken_over
from transforms.chunkers.filters import comment_blocks, leave_out, prompt_lines
from transforms.chunkers.handlers import Caps, call, load, pieces_of
from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import PROSE, Packer, whole
from transforms.chunkers.pieces import Piece
from transforms.chunkers.rulers import black
from transforms.chunkers.skipping import SKIPPED, SkipList, skip_rule
from transforms.errors import ChunkingError, ConfigError
from transforms.parsers.code import comments
from transforms.parsers.languages import language_of
from transforms.parsers.media_types import media_type_of
from transforms.records import Document, DocumentChunks, Span, path_of

_JSON = frozenset({"application/json", "application/jsonl"})
_NOTES = frozenset({"text/markdown", "text/plain"})
_README = re.compile(r"readme\b", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n]+")
# What a line of a program has and one of prose hardly ever.
_CODE_LINE = re.compile(
    r"[{};]\s*$|^\s*(?:[})\]]|//|/\*|#!|#\s*include\b|@\w)|^\s*(?:end|else|done|fi|begin|pass|break)\s*$"
    r"|^\s*(?:local\s+)?(?:function|def|fn|func)\s+\w+[.:\w]*\("
    r"|^\s*(?:def|class|import|from|fn|func|function|var|let|const|return|package|use|using|public|private|static|"
    r"if|elif|else|for|while|switch|case|end)\b.*[:({;]\s*$"
    r"|^\s*(?:import|from|use|using|package|return|let|const|var)\s+[\w.*{\"'<]+"
    r"(?:\s+(?:import|from|as|=)\s+\S.*)?;?\s*$"
    r"|^\s*[\w.\[\]$]+\s*(?:[-+*/|&]|:|<)?=\s*\S|^\s*[\w.]+\([^()]*\)\s*;?\s*$"
)
_LOOKED_AT = 200
_LONGEST_LINE = 200


class FileTypeChunker(Chunker):
    """Programs by `code`, JSON by `json`, Markdown, README and text files by `markdown`, or by functions of the user.

    Asked in this order: `handler`; what `router` answers; the handler for the extension; the strategy for the
    extension, else for the media type; then code is told from prose. Functions are named by import path,
    `package.module:function`, which workers can import too, and called with a `Document`. A handler gives texts or
    spans in order; what it leaves out is noted, and what is larger than `chunk_size` is cut.

    Args:
        handler: Function that cuts every document.
        router: Function that gives, for a document, the name of a strategy, the import path of a handler, or None.
        handlers: Functions by file extension, as a table.
        version: Version of those functions; to be changed whenever they cut otherwise.
        max_chunks: Most pieces that a handler may give.
        max_chars: Most characters that all pieces of a handler may have together.
        min_chunk_non_ws_chars: Fewest characters besides white space that a piece of a handler may have; blank ones
            are passed over.
        k: A document of at most this many words is one chunk, if it fits; a handler has precedence.
        fallback_mode: How to cut what nothing else tells: between lines (`line`), like prose (`char`), or by what it
            looks like (`auto`).
        for_code: The strategy for programs, and between lines: a name, a table of its settings with its `name`, or a
            chunker.
        for_json: The strategy for JSON and JSON lines.
        for_markdown: The strategy for Markdown, README files and `.txt`.
        for_prose: The strategy for other text.
        skip: Paths of documents to skip, instead of the usual ones, as patterns in any case: `folder/`, `*.lock`, or
            several names of a path.
        extra_skip: Paths to skip besides.
        comment_block_threshold: Leave out blocks of at least this many lines of comments; 0 leaves out none.
        prompt_filter: Whether to leave out lines that speak to a language model.

    Raises:
        ConfigError: If a setting is unknown or refused, a function cannot be imported, or a setting of functions is
            given without any.
    """

    name: ClassVar[str] = "file_type"

    handler: str | None = None
    router: str | None = None
    handlers: tuple[tuple[str, str], ...] = ()
    version: str = "1"
    max_chunks: int = Field(default=10_000, ge=1)
    max_chars: int = Field(default=10_000_000, ge=1)
    min_chunk_non_ws_chars: int = Field(default=1, ge=1)
    k: int = Field(default=40, ge=0)
    fallback_mode: Literal["auto", "line", "char"] = "auto"
    for_code: Chunker = Field(default="code")  # type: ignore[assignment]  # the validator makes it one
    for_json: Chunker = Field(default="json")  # type: ignore[assignment]
    for_markdown: Chunker = Field(default="markdown")  # type: ignore[assignment]
    for_prose: Chunker = Field(default="recursive")  # type: ignore[assignment]
    skip: tuple[str, ...] | None = None
    extra_skip: tuple[str, ...] = ()
    comment_block_threshold: int = Field(default=0, ge=0)
    prompt_filter: bool = False

    @field_validator("for_code", "for_json", "for_markdown", "for_prose", mode="before")
    @classmethod
    def _make_chunker(cls, value: object, info: ValidationInfo) -> object:
        return nested_chunker(value, info)

    @field_validator("handlers", mode="before")
    @classmethod
    def _by_extension(cls, value: object) -> object:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list | tuple) or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
        ):
            return value
        named = [(f".{str(key).lower().lstrip('.')}", path) for key, path in pairs]
        twice = [extension for extension, times in Counter(name for name, _ in named).items() if times > 1]
        if twice:
            raise ValueError(f"two handlers for {twice[0]}")
        # The longest extension that a name has counts.
        return tuple(sorted(named, key=lambda pair: (-len(pair[0]), pair[0])))

    @field_validator("version", mode="before")
    @classmethod
    def _version_as_text(cls, value: object) -> object:
        # A bare 2 on the command line is a number.
        return str(value) if type(value) in (int, float) else value

    @field_validator("handler", "router", mode="after")
    @classmethod
    def _is_function(cls, value: str | None) -> str | None:
        if value is not None:
            load(value)
        return value

    @field_validator("handlers", mode="after")
    @classmethod
    def _are_functions(cls, value: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        for _, path in value:
            load(path)
        return value

    @field_validator("skip", "extra_skip", mode="after")
    @classmethod
    def _are_rules(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(sorted({skip_rule(rule) for rule in value}))

    @model_validator(mode="after")
    def _functions_are_there(self) -> Self:
        if not self._has_functions:
            for setting in ("version", "max_chunks", "max_chars", "min_chunk_non_ws_chars"):
                value = getattr(self, setting)
                if value != type(self).model_fields[setting].default:
                    message = "says something of functions only: give a handler, router or handlers"
                    raise ConfigError(setting, value, message)
        return self

    @property
    def _has_functions(self) -> bool:
        return bool(self.handler or self.router or self.handlers)

    @property
    def _skip_rules(self) -> set[str]:
        return {*(SKIPPED if self.skip is None else self.skip), *self.extra_skip}

    def counting(self) -> dict[str, Any]:
        """Every setting as it counts: those to which the others leave nothing to say are at a default, or null."""
        settings, rules = self.settings(), self._skip_rules
        if rules.issuperset(SKIPPED):
            settings |= {"skip": None, "extra_skip": sorted(rules.difference(SKIPPED))}
        else:
            settings |= {"skip": sorted(rules), "extra_skip": []}
        if not self._has_functions:
            # Overlap is that of the chunkers within, which have settings of their own.
            settings["chunk_overlap"] = 0
        if self.handler is not None:
            settings |= dict.fromkeys(("for_code", "for_json", "for_markdown", "router"))
            settings |= {"handlers": (), "fallback_mode": "auto"}
        return settings

    def skipped(self, document: Document) -> DocumentChunks | None:
        """What the ledger says of a document whose path is on the list of those to skip."""
        rule = self._skip_list.rule_for(path_of(document))
        if rule is None:
            return None
        return DocumentChunks(document, (), "skipped", self.record, reason=f"skip rule {rule}")

    def cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        """The slices of [start, end) that become chunks, in order."""
        pieces = self._cut(measured, start, end)
        removed = self._removed(measured)
        if removed:
            return leave_out(measured, list(pieces), removed, self.chunk_size, self.counter.count)
        return pieces

    def _cut(self, measured: Measured, start: int, end: int) -> Iterator[Piece]:
        document = measured.document
        # A part of a document that another strategy leaves to this one is neither asked about nor handled.
        way = self._way(document) if measured.is_all(start, end) else self.for_prose
        if isinstance(way, str):
            yield from self._handled(measured, way)
            return
        few = len(document.text.split(None, self.k)) <= self.k
        piece = whole(measured, start, end, self.chunk_size) if few else None
        if piece:
            yield piece
            return
        for piece in way.cut(measured, start, end):
            piece.fallback = f"{way.name}:{piece.fallback}" if piece.fallback else way.name
            yield piece

    def _way(self, document: Document) -> Chunker | str:
        """What cuts a document: a strategy, or the import path of a handler."""
        if self.handler is not None:
            return self.handler
        if (
            self.router is not None
            and (answer := call(self.router, document, self.name, "router")) is not None
        ):
            return self._answered(document, answer)
        name = path_of(document).rpartition("/")[2].lower()
        for extension, path in self.handlers:
            if name.endswith(extension):
                return path
        return self._built_in(document, name)

    def _answered(self, document: Document, answer: object) -> Chunker | str:
        """What the router says, as a strategy or a handler."""
        # The registry imports every strategy, and so this module.
        from transforms.chunkers import CHUNKERS

        if isinstance(answer, str) and answer in CHUNKERS and answer != self.name:
            if answer not in self._routed:
                kind = CHUNKERS[answer]
                self._routed[answer] = kind(**taken_over(self.settings(), kind))
            return self._routed[answer]
        message = "must give the name of a strategy, the import path of a handler, or None"
        if isinstance(answer, str) and ":" in answer:
            try:
                load(answer)
            except ValueError as error:
                message = str(error)
            else:
                return answer
        raise ChunkingError(
            document.document_id, self.name, "router", f"{self.router}: {answer!r}: {message}"
        )

    def _built_in(self, document: Document, name: str) -> Chunker:
        media_type = media_type_of(name) or document.media_type
        if language_of(document.media_type, name):
            return self.for_code
        if media_type in _JSON:
            return self.for_json
        if media_type in _NOTES and (_README.match(name) or "." in name or media_type != "text/plain"):
            return self.for_markdown
        if _README.match(name):
            return self.for_markdown
        mode = self.fallback_mode
        if mode == "line" or (mode == "auto" and _looks_like_code(document.text)):
            return self.for_code
        return self.for_prose

    def _handled(self, measured: Measured, path: str) -> Iterator[Piece]:
        """The pieces of a handler, cut where they are over budget."""
        caps = Caps(self.max_chunks, self.max_chars, self.min_chunk_non_ws_chars)
        packer = Packer(measured, self.chunk_size, self.chunk_overlap, PROSE)
        last, held = -1, measured.start
        for first, stop in pieces_of(path, measured.document, caps, self.name):
            start, end = measured.trim(measured.edge_before(first), measured.edge_after(stop))
            if start <= last:
                start = measured.begin(held, end)
            if start >= end or end <= held:
                continue
            self._leave_gap(measured, (held, start))
            piece = whole(measured, start, end, self.chunk_size)
            for each in [piece] if piece else packer.pack(max(start, held), end):
                each.new, each.fallback = max(each.new, held), "handler"
                last = each.start
                yield each
            held = end
        self._leave_gap(measured, (held, measured.end))

    def _leave_gap(self, measured: Measured, gap: Span) -> None:
        """Note what no piece of a handler holds."""
        left_out = black(measured.text[slice(*gap)])
        if left_out:
            measured.removed.append(gap)
            measured.note("character left out by a handler", left_out)

    def _removed(self, measured: Measured) -> list[Span]:
        """What the filters leave out, in order."""
        document, removed = measured.document, []
        if self.comment_block_threshold:
            language = language_of(document.media_type, path_of(document))
            found = comments(document.text, language) if language else []
            removed += comment_blocks(document.text, found, self.comment_block_threshold)
            self._note_lines(measured, "line of comments left out", removed)
        if self.prompt_filter:
            lines = prompt_lines(document.text)
            self._note_lines(measured, "line of prompts left out", lines)
            removed += lines
        edges = measured.edge_before, measured.edge_after
        return [(edges[0](start), edges[1](end)) for start, end in sorted(removed)]

    def _note_lines(self, measured: Measured, what: str, spans: list[Span]) -> None:
        if spans:
            measured.note(what, sum(len(_LINE.findall(measured.text, start, end)) for start, end in spans))

    @cached_property
    def _skip_list(self) -> SkipList:
        return SkipList(sorted(self._skip_rules))

    @cached_property
    def _routed(self) -> dict[str, Chunker]:
        """Strategies that the router has named, made once."""
        return {}


def _looks_like_code(text: str) -> bool:
    """Whether many of the first lines, two in five, look like those of a program."""
    lines = [line[0][:_LONGEST_LINE] for line in islice(_LINE.finditer(text), _LOOKED_AT) if line[0].strip()]
    return 5 * sum(bool(_CODE_LINE.search(line)) for line in lines) > 2 * len(lines)
