"""Handlers: functions of the user, named by import path, that say how a document is cut; their answers are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from transforms.chunkers.rulers import black
from transforms.errors import ChunkingError
from transforms.records import Document, Span

Handler = Callable[[Document], Iterable["str | Span"]]


def load(path: str) -> Callable[[Document], Any]:
    """The function that an import path names.

    Args:
        path: `package.module:function`.

    Raises:
        ValueError: If it names nothing that can be imported and called.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ValueError("must be an import path like package.module:function")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    # What a module does when it is imported is its own affair.
    except Exception as error:
        raise ValueError(f"cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise ValueError(f"is no function but {type(found).__name__}")
    function: Callable[[Document], Any] = found
    return function


@dataclass(frozen=True, slots=True)
class Caps:
    """What a handler may answer.

    Args:
        pieces: Most pieces.
        characters: Most characters in all pieces together.
        black: Fewest characters of a piece that are not white space.
    """

    pieces: int
    characters: int
    black: int


def call(path: str, document: Document, strategy: str, reason: str = "handler") -> Any:
    """What a function of the user says of a document.

    Args:
        path: Its import path.
        document: The document.
        strategy: The strategy that asks.
        reason: What the function is there for.

    Raises:
        ChunkingError: For that reason, if it raises anything.
    """
    try:
        return load(path)(document)
    # A function that ends the process would take all other documents with it.
    except (Exception, SystemExit) as error:
        raise _refused(path, document, strategy, f"raised {type(error).__name__}: {error}", reason) from error


def pieces_of(path: str, document: Document, caps: Caps, strategy: str) -> Iterator[Span]:
    """The pieces into which a handler cuts a document, in order; blank ones are passed over.

    Args:
        path: Import path of the handler.
        document: The document.
        caps: What it may answer.
        strategy: The strategy that asks.

    Raises:
        ChunkingError: `handler` if it raises anything, or gives something else than slices of the text in order;
            `handler_cap` if it passes a cap.
    """
    text, last, characters = document.text, (-1, 0), 0
    for place, item in enumerate(_items(path, document, strategy)):
        if place >= caps.pieces:
            message = f"gives more than max_chunks={caps.pieces} pieces"
            raise _refused(path, document, strategy, message, "handler_cap")
        span = _located(text, item, last) if isinstance(item, str) else _span(text, item, last)
        if span is None:
            message = f"gives as piece {place} {str(item)[:60]!r}, which is no slice after the one before"
            raise _refused(path, document, strategy, message)
        characters += span[1] - span[0]
        if characters > caps.characters:
            message = f"gives more than max_chars={caps.characters} characters"
            raise _refused(path, document, strategy, message, "handler_cap")
        seen = black(text[slice(*span)])
        if not seen:
            continue
        if seen < caps.black:
            message = f"gives as piece {place} {text[slice(*span)]!r}, less than min_chunk_non_ws_chars={caps.black}"
            raise _refused(path, document, strategy, message, "handler_cap")
        last = span
        yield span


def _items(path: str, document: Document, strategy: str) -> Iterator[object]:
    """What a handler gives, one by one: it may be a generator, which raises late and need not end."""
    answer = call(path, document, strategy)
    if isinstance(answer, str):
        answer = [answer]
    if not isinstance(answer, Iterable) or isinstance(answer, Mapping | Set):
        message = f"gives {type(answer).__name__}, not texts or spans in order"
        raise _refused(path, document, strategy, message)
    try:
        yield from answer
    except ChunkingError:
        raise
    except (Exception, SystemExit) as error:
        raise _refused(path, document, strategy, f"raised {type(error).__name__}: {error}") from error


def _located(text: str, piece: str, last: Span) -> Span | None:
    """Where a piece stands: the first place at which it ends after the piece before."""
    if not piece.strip():
        return last[1], last[1]
    start = text.find(piece, max(last[0] + 1, last[1] - len(piece) + 1))
    return None if start < 0 else (start, start + len(piece))


def _span(text: str, item: object, last: Span) -> Span | None:
    if not isinstance(item, tuple | list) or [type(place) for place in item] != [int, int]:
        return None
    start, end = item
    return (start, end) if last[0] < start < end <= len(text) and last[1] < end else None


def _refused(
    path: str, document: Document, strategy: str, message: str, reason: str = "handler"
) -> ChunkingError:
    return ChunkingError(document.document_id, strategy, reason, f"{path} {message}")
