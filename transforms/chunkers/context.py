"""Context: what to read before a chunk to know where it stands: title, headings in force, the header of its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from transforms.chunkers.measured import Measured
from transforms.tokenizers.base import Tokenizer

ContextKind = Literal["none", "headings", "full"]

# Between the context of a chunk and its text, where they are embedded as one.
SEPARATOR = "\n\n"
_PATH_SEPARATOR = " > "


class Context:
    """The context of the chunks of one document.

    It is a line with the document's title (`full` only), a line with the path (headings, scopes of a program, the
    path in a JSON text), and the header of the table in whose rows the chunk begins. It never takes more than half
    of the budget: a header that would is left out, and so are the outermost lines and headings; both are noted.

    Args:
        measured: The document.
        kind: How much of it to tell.
        size: Budget of a chunk, in tokens.
        in_budget: Whether context, separator and text share the budget.
        tokenizer: What counts.
    """

    __slots__ = ("_has_title", "_in_budget", "_kind", "_made", "_measured", "_size", "_tokenizer")

    def __init__(
        self, measured: Measured, kind: ContextKind, size: int, in_budget: bool, tokenizer: Tokenizer
    ) -> None:
        self._measured = measured
        self._kind = kind
        self._size = size
        self._in_budget = in_budget
        self._tokenizer = tokenizer
        self._has_title = kind == "full" and bool(measured.title)
        self._made: dict[tuple[tuple[str, ...], str | None], tuple[str | None, int]] = {}

    @property
    def is_told(self) -> bool:
        """Whether any chunk may have a context."""
        measured = self._measured
        return self._kind != "none" and bool(self._has_title or measured.paths or measured.has_tables)

    @property
    def is_of_place(self) -> bool:
        """Whether the context of a chunk depends on nothing but the path and the table that it starts in."""
        return not self._in_budget

    def of(self, start: int, text: str, tokens: int) -> str | None:
        """The context of a chunk; None if it has none, or none that fits beside it.

        Args:
            start: Where the chunk starts, in code points.
            text: Its text.
            tokens: Tokens of its text.
        """
        context, cost = self._at(start)
        if context is None or not self._in_budget:
            return context
        if self._measured.ruler.is_additive and not text[0].isspace():
            return context if tokens + cost <= self._size else self._shortened(context, text)
        return self._shortened(context, text)

    def room(self, start: int, size: int) -> int:
        """What the context of a chunk leaves of the budget that they share, at least half of it.

        Args:
            start: Where the chunk starts, in code points.
            size: The budget, in tokens.
        """
        return size - self._at(start)[1]

    def _at(self, start: int) -> tuple[str | None, int]:
        """The context of a chunk that starts somewhere, and its tokens in the budget, with those of the separator."""
        measured = self._measured
        key = measured.path_at(start), measured.table_header_at(start) if measured.has_tables else None
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(*key)
        return made

    def _make(self, path: tuple[str, ...], header: str | None) -> tuple[str | None, int]:
        lines = []
        title = self._measured.title if self._kind == "full" else None
        if title and title.strip() and path[:1] != (title,):
            lines.append(title.strip())
        if path:
            lines.append(_PATH_SEPARATOR.join(path))
        if header:
            if not self._is_within_half(header):
                self._measured.note("table header too long for the context")
            else:
                lines.append(header)
        context = "\n".join(lines)
        if not context:
            return None, 0
        if not self._is_within_half(context):
            context = next(shorter for shorter in _shorter(context) if self._is_within_half(shorter))
            self._measured.note("shortened context")
        cost = self._tokens(context) if self._in_budget else 0
        return (context, cost) if context else (None, 0)

    def _is_within_half(self, context: str) -> bool:
        """Whether a context, with the separator, takes at most half of the budget."""
        # No encoding makes more tokens than bytes, and no character has more than four.
        most = len(context) * (1 if context.isascii() else 4) + len(SEPARATOR)
        half = self._size // 2
        return (most <= half and self._measured.ruler.is_additive) or self._tokens(context) <= half

    def _tokens(self, context: str) -> int:
        return self._tokenizer.count(context + SEPARATOR) if context else 0

    def _shortened(self, context: str, text: str) -> str | None:
        """As much of a context as fits beside a text."""
        for shorter in _shorter(context):
            if not shorter or self._tokenizer.count(shorter + SEPARATOR + text) <= self._size:
                return shorter or None
        return None


def _shorter(context: str) -> Iterator[str]:
    """A context, and what is left of it as its outermost parts are dropped one by one; the last is empty."""
    while context:
        yield context
        line, line_break, rest = context.partition("\n")
        _, separator, inner = line.partition(_PATH_SEPARATOR)
        context = inner + line_break + rest if separator else rest
    yield ""
