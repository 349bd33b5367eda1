"""Filters: whole lines that a setting leaves out of the chunks, such as long comments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from transforms.chunkers.measured import Measured
from transforms.chunkers.pieces import Piece
from transforms.records import Span

_PROMPT = re.compile(
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>"
    r"|\[/?INST\]|<</?SYS>>"
    r"|\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+|the\s+|your\s+){0,2}(?:previous|prior|above|earlier)\s+"
    r"(?:instructions?|prompts?|messages?|rules?)"
    r"|\byou\s+are\s+(?:now\s+)?(?:chatgpt|claude|gemini|an?\s+(?:\w+\s+)?(?:ai|language\s+model|assistant|chatbot))\b"
    r"|^\s*(?:system|assistant|user)\s*(?:prompt|message)?\s*:\s",
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\r\n]+")


def comment_blocks(text: str, comments: Sequence[Span], lines: int) -> list[Span]:
    """Blocks of at least so many lines that are nothing but comments, blank lines apart.

    Args:
        text: The program.
        comments: Its comments, in order.
        lines: Lines that make a block; a line that tells the system what runs it is none of them.
    """
    blocks: list[Span] = []
    held: Span | None = None
    for start, end in comments:
        if text.startswith("#!", start) and not text[:start].strip("\ufeff"):
            continue
        if held and not text[held[1] : start].strip():
            held = held[0], end
            continue
        blocks += _block(text, held, lines)
        held = start, end
    return blocks + _block(text, held, lines)


def _block(text: str, span: Span | None, lines: int) -> list[Span]:
    """The lines of a run of comments, if there are enough that hold nothing else."""
    if span is None:
        return []
    start, end = span
    end = start + len(text[start:end].rstrip())
    if not _begins_line(text, start):
        # Behind code on its line: the block begins with the next one.
        start = _next_line(text, start, end)
    rest = _LINE.match(text, end)
    if rest and rest[0].strip():
        # Code follows the comment on its line.
        end = max(text.rfind("\n", start, end), text.rfind("\r", start, end))
    found = text[start:end].splitlines() if start < end else []
    if sum(not line.isspace() and bool(line) for line in found) < lines:
        return []
    return [(start, end)]


def _begins_line(text: str, start: int) -> bool:
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    return not text[line:start].strip("\ufeff \t\f\v")


def _next_line(text: str, start: int, end: int) -> int:
    found = re.compile(r"[\r\n]\s*").search(text, start, end)
    return found.end() if found else end


def prompt_lines(text: str) -> list[Span]:
    """Lines that speak to a language model rather than to a reader."""
    return [line.span() for line in _LINE.finditer(text) if _PROMPT.search(line[0])]


def leave_out(
    measured: Measured,
    pieces: Sequence[Piece],
    removed: Sequence[Span],
    size: int,
    count: Callable[[str], int],
) -> Iterator[Piece]:
    """Pieces without what is left out, which the document remembers as removed.

    Args:
        measured: The document.
        pieces: Its pieces, in order.
        removed: What is left out, in order, without overlap.
        size: Budget of a chunk, in tokens.
        count: Counts the tokens of a text.
    """
    measured.removed = _union([*measured.removed, *removed])
    # Place of each old piece among the new ones; of one that is gone, that of the piece it stood under.
    places: list[int | None] = []
    placed, before = 0, Piece(-1, -1, 0, 0)
    first = 0
    for piece in pieces:
        while first < len(removed) and removed[first][1] <= piece.start:
            first += 1
        parent = None if piece.parent is None else places[piece.parent]
        places.append(parent)
        low = piece.start
        spans: list[Span] = []
        for start, end in removed[first:]:
            if start >= piece.end:
                break
            spans.append((low, start))
            low = max(low, end)
        spans = _trimmed(measured, [*spans, (low, piece.end)])
        if spans and spans[0][0] <= before.start:
            spans = _trimmed(measured, [(max(start, before.end), end) for start, end in spans])
        if not spans or spans[-1][1] <= before.end:
            continue
        joined = "".join(measured.text[start:end] for start, end in spans)
        groups = [spans] if len(spans) == 1 or count(joined) <= size else [[span] for span in spans]
        for group in groups:
            group = _trimmed(measured, group)
            if not group:
                continue
            text = "".join(measured.text[start:end] for start, end in group)
            start, end = group[0][0], group[-1][1]
            before = Piece(
                start,
                max(piece.new, start),
                end,
                count(text),
                piece.over_budget,
                piece.kind,
                piece.heading_level,
                parent,
                piece.fallback,
                tuple(group) if len(group) > 1 else None,
                piece.derived,
            )
            yield before
            if places[-1] is parent:
                places[-1] = placed
            placed += 1


def _trimmed(measured: Measured, spans: Sequence[Span]) -> list[Span]:
    """Spans that are not blank, with clean edges where the text that they make together has its own."""
    kept = [(start, end) for start, end in spans if start < end and not measured.text[start:end].isspace()]
    if kept:
        kept[0] = measured.begin(*kept[0]), kept[0][1]
        kept[-1] = kept[-1][0], measured.finish(kept[-1][1], kept[-1][0])
    return kept


def _union(spans: Sequence[Span]) -> list[Span]:
    united: list[Span] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united
