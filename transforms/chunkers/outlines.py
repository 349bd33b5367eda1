"""Packing by an outline: parts of a structured text joined while they fit, and opened where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from transforms.chunkers.measured import Measured
from transforms.chunkers.packing import Piece, joined
from transforms.parsers.json_text import Members
from transforms.parsers.outline import Node
from transforms.records import Span

Path = tuple[str, ...]


def pack_outline(
    measured: Measured,
    nodes: Sequence[Node],
    span: Span,
    size: int,
    cut: Callable[[int, int], Iterator[Piece]],
    path: Path = (),
    below: Callable[[Path, str], Path] = lambda path, name: (*path, name),
) -> Iterator[Piece]:
    """Chunks of a text that has an outline.

    Neighbours share a chunk while they fit and neither is `alone`. A node that does not fit is opened: what it
    consists of is packed the same way, its pieces under its first one.

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
    levels = [_Level(measured, nodes, *span, path)]
    levels[0].is_opened = False
    while levels:
        level = levels[-1]
        if level.at == len(level.parts):
            levels.pop()
            continue
        (start, end), place = level.parts[level.at]
        node = level.nodes[place] if place >= 0 else None
        path = below(level.path, node.name) if node and node.name else level.path
        measured.enter(start, path)
        level.at, piece = joined(measured, level.parts, level.at, level.neighbours(), size)
        if piece is None and node and len(node.children):
            levels.append(_Level(measured, node.children, start, end, path, level.parent))
            continue
        for each in [piece] if piece else cut(start, end):
            each.parent = level.parent
            yield each
            if level.is_opened:
                level.parent, level.is_opened = placed, False
            placed += 1


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
        self.nodes = nodes
        self.path = path
        self.parent = parent
        self.is_opened = True
        self.at = 0
        self._loner = -1
        # Of a million elements hardly any is opened, and only those become nodes.
        spans = (
            zip(nodes.starts, nodes.ends, strict=True) if isinstance(nodes, Members) else map(_span, nodes)
        )
        self.parts: list[tuple[Span, int]] = []
        for place, span in enumerate(spans):
            self._fill(measured, start, span[0])
            self.parts.append((span, place))
            start = span[1]
        self._fill(measured, start, end)

    def _fill(self, measured: Measured, start: int, end: int) -> None:
        if start < end and measured.begin(start, end) < end:
            self.parts.append(((start, end), -1))

    def neighbours(self) -> int:
        """End of the parts that the next one may share a chunk with."""
        if isinstance(self.nodes, Members):
            return len(self.parts)
        if self._loner < self.at:
            self._loner = self.at
            while self._loner < len(self.parts) and not self._is_alone(self._loner):
                self._loner += 1
        return max(self._loner, self.at + 1)

    def _is_alone(self, part: int) -> bool:
        place = self.parts[part][1]
        return place >= 0 and self.nodes[place].alone


def _span(node: Node) -> Span:
    return node.start, node.end
