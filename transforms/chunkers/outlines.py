"""Packing by an outline: parts of a structured text joined while they fit, and opened where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import joined
from transforms.chunkers.pieces import Piece
from transforms.parsers.json_text import Members
from transforms.parsers.outline import Node
from transforms.records import Span

Path = tuple[str, ...]
Below = Callable[[Path, str], Path]


def pack_outline(
    measured: Measured,
    nodes: Sequence[Node],
    span: Span,
    size: int,
    cut: Callable[[int, int], Iterable[Piece]],
    path: Path = (),
    below: Below = lambda path, name: (*path, name),
) -> Iterator[Piece]:
    """Chunks of a text that has an outline.

    Neighbours share a chunk while they fit and neither is `alone`. A node that does not fit is opened: what it
    consists of is packed the same way, its pieces under its first one. What ends it, such as a bracket, goes with
    its last piece if that fits; the bracket that begins a JSON value goes with the first part inside.

    Args:
        measured: The document; it learns the paths of its parts.
        nodes: Its outermost parts, in order.
        span: What is packed.
        size: Budget of a chunk, in tokens.
        cut: What cuts a part that is too large and has no parts of its own.
        path: Path of the document.
        below: The path of a part from the path of what it is in and its name.
    """
    placed = 0
    # The piece placed last waits for the closing bracket of what it is in.
    waiting: Piece | None = None
    levels = [_Level(measured, nodes, *span, path)]
    levels[0].is_opened = False
    while levels:
        level = levels[-1]
        if level.at == len(level.parts):
            levels.pop()
            continue
        (start, end), place = level.parts[level.at]
        is_leading = level.leads_into_next(size)
        if is_leading:
            level.at += 1
            (_, end), place = level.parts[level.at]
        node = level.nodes[place] if place >= 0 else None
        path = below(level.path, node.name) if node and node.name else level.path
        measured.enter(start, path)
        if is_leading:
            level.at, piece = level.at + 1, None
        else:
            level.at, piece = joined(measured, level.parts, level.at, level.neighbours(), size)
        if piece is None and node and len(node.children):
            levels.append(_Level(measured, node.children, start, end, path, level.parent))
            if is_leading and level.is_opened:
                level.parent, level.is_opened = placed, False
            continue
        is_closing = node is None and level.at == len(level.parts) and len(levels) > 1
        if piece and waiting and is_closing and _extend(measured, waiting, piece.end, size):
            continue
        for each in [piece] if piece else cut(start, end):
            if waiting:
                yield waiting
            each.parent = level.parent
            waiting = each
            if level.is_opened:
                level.parent, level.is_opened = placed, False
            placed += 1
    if waiting:
        yield waiting


def _extend(measured: Measured, piece: Piece, end: int, size: int) -> bool:
    """Lengthen a piece up to `end` if that fits."""
    size = measured.room(piece.start, size)
    if piece.over_budget or end > measured.reach(piece.start, size):
        return False
    tokens = measured.count(piece.start, end)
    if tokens > size:
        return False
    piece.end, piece.tokens = end, tokens
    return True


class _Level:
    """A node that is being packed.

    Args:
        measured: The document.
        nodes: Its children.
        start: First character.
        end: End of its span.
        path: Its path.
        parent: Place of the piece that its first piece stands under.

    Attributes:
        parts: What it consists of but for what is blank, in order: spans, each with the place of its child; -1 for
            what lies between children.
        is_opened: Whether its next piece is its first, which the others stand under.
        at: The next part.
    """

    def __init__(
        self,
        measured: Measured,
        nodes: Sequence[Node],
        start: int,
        end: int,
        path: Path,
        parent: int | None = None,
    ) -> None:
        self._measured = measured
        self.nodes = nodes
        self.path = path
        self.parent = parent
        self.is_opened = True
        self.at = 0
        self._loner = -1
        # Of a million elements hardly any is opened, and only those become nodes.
        self._has_members = isinstance(nodes, Members)
        self.parts: list[tuple[Span, int]] = []
        for place, span in enumerate(self._spans()):
            self._fill(start, span[0])
            self.parts.append((span, place))
            start = span[1]
        self._fill(start, end)

    def _spans(self) -> Iterable[Span]:
        """Spans of the children, which divide no grapheme cluster."""
        if isinstance(self.nodes, Members):
            return zip(self.nodes.starts, self.nodes.ends, strict=True)
        edge = self._measured.edge_before
        return ((edge(node.start), edge(node.end)) for node in self.nodes)

    def _fill(self, start: int, end: int) -> None:
        if start < end and self._measured.begin(start, end) < end:
            self.parts.append(((start, end), -1))

    def neighbours(self) -> int:
        """End of the parts that the next one may share a chunk with."""
        if self._has_members:
            return len(self.parts)
        if self._loner < self.at:
            self._loner = self.at
            while self._loner < len(self.parts) and not self._is_alone(self._loner):
                self._loner += 1
        return max(self._loner, self.at + 1)

    def leads_into_next(self, size: int) -> bool:
        """Whether the next part is the opening bracket before a member that does not fit."""
        if not self._has_members or self.parts[self.at][1] >= 0 or self.at + 1 == len(self.parts):
            return False
        after = self.at + 1
        return joined(self._measured, self.parts, after, after + 1, size)[1] is None

    def _is_alone(self, part: int) -> bool:
        place = self.parts[part][1]
        return place >= 0 and self.nodes[place].alone
