"""The outline of a structured text: nested spans with names, such as the classes and methods of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a structured text, with the parts it consists of.

    What lies between the children of a node, before the first and after the last, belongs to the node itself.

    Args:
        start: First character, in code points.
        end: End of the half-open span.
        name: What it adds to the path of what lies inside: `Shape`, `.items[3]`; None if nothing.
        children: Its parts: in order, without overlap, inside the span.
        alone: Whether it is a chunk by itself even where its neighbours would fit beside it.
    """

    start: int
    end: int
    name: str | None = None
    children: Sequence[Node] = ()
    alone: bool = False
