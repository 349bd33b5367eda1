"""JSON: its members and elements as an outline of the source text, named by the steps of their JSON path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count
from json import JSONDecoder
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from transforms.parsers.outline import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.int64]
    _Flags = NDArray[np.bool_]

_BOM = "\ufeff"
_WHITE_SPACE = " \t\n\r"
_OPENING = re.compile(f"{_BOM}?[{_WHITE_SPACE}]*[\\[{{]")
_LINE = re.compile(r"[^\r\n]+")
# A key is said again with every chunk below it, so a long one is said in short.
_LONGEST_KEY = 200
# Levels of nesting that the decoder is given at a time; it recurses.
_BAND = 100
# Only whether it is JSON is asked, so values shrink to their length: less memory, and no integer is too long.
_DECODER = JSONDecoder(strict=False, object_pairs_hook=len, parse_int=len, parse_float=len)

_OBJECT, _ARRAY, _CLOSE, _COMMA, _COLON, _QUOTE, _WHITE = range(1, 8)
_MARKS = ("{", "[", "}]", ",", ":", '"', _WHITE_SPACE)
_KINDS = np.zeros(256, np.uint8)
for _kind, _characters in enumerate(_MARKS, 1):
    _KINDS[list(_characters.encode())] = _kind
_STEPS = np.array([0, 1, 1, -1, 0, 0], np.int32)


def outline_json(text: str) -> Node | None:
    """The outline of a JSON text; None if it is not JSON.

    The node of the whole text is named `$`, and its children are the members or elements of its value, each with
    those of its own. A child spans `"key": value` and the comma that follows, so that there is nothing but white
    space between two children; brackets belong to the node around them. Its name is its step in the JSON path
    (RFC 9535): `.name`, or `["odd key"]` as the source writes it, or `[3]`.

    Children are `Members`. Duplicate keys, NaN, infinities, control characters in strings and a byte order mark are
    accepted.

    Args:
        text: The text. Nothing but white space may stand around its one value.
    """
    if not _is_json(text.removeprefix(_BOM)):
        return None
    return Node(0, len(text), "$", _children(text, 0, len(text)))


def outline_json_lines(text: str, *, alone: bool = False) -> tuple[list[Node], int]:
    """The outline of JSON lines: a node for each line that is not blank; and how many of them are not JSON.

    A node spans its line without the white space around, and is named `$[0]`, `$[1]`, ... in order. A line that is
    not JSON has no children.

    Args:
        text: The text; its lines may end in LF, CRLF or CR.
        alone: Whether each line is a chunk by itself.
    """
    nodes: list[Node] = []
    bad = 0
    for found in _LINE.finditer(text):
        line = found[0].rstrip(_WHITE_SPACE)
        if not line or line.isspace():
            continue
        end = found.start() + len(line)
        start = end - len(line.lstrip(_WHITE_SPACE))
        is_json = _is_json(line if nodes else line.removeprefix(_BOM))
        bad += not is_json
        children = _children(text, start, end) if is_json else ()
        nodes.append(Node(start, end, f"$[{len(nodes)}]", children, alone))
    return nodes, bad


class Members(Sequence[Node]):
    """The members of an object or the elements of an array.

    They are found when they are first asked for, and each node is made when it is asked for. Where they start and
    end is known without the nodes, at a small part of the cost.
    """

    __slots__ = ("_first", "_parts")

    def __init__(self, parts: _Parts, first: int) -> None:
        self._parts = parts
        self._first = first

    @property
    def starts(self) -> list[int]:
        """First character of each."""
        return self._column(self._parts.columns.starts)

    @property
    def ends(self) -> list[int]:
        """End of the half-open span of each."""
        return self._column(self._parts.columns.ends)

    def __len__(self) -> int:
        return int(self._parts.columns.counts[self._first])

    @overload
    def __getitem__(self, place: int) -> Node: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Node]: ...
    def __getitem__(self, place: int | slice) -> Node | Sequence[Node]:
        if isinstance(place, slice):
            return list(self)[place]
        place = range(len(self))[place]
        return self._node(place, *(int(column[self._first + place]) for column in self._parts.columns[:4]))

    def __iter__(self) -> Iterator[Node]:
        return map(self._node, count(), *map(self._column, self._parts.columns[:4]))

    def _column(self, column: NDArray[np.int32]) -> list[int]:
        values: list[int] = column[self._first : self._first + len(self)].tolist()
        return values

    def _node(self, place: int, start: int, end: int, colon: int, inner: int) -> Node:
        parts = self._parts
        name = _step(parts.text[start : min(colon, start + _LONGEST_KEY)]) if colon else f"[{place}]"
        return Node(start, end, name, Members(parts, inner) if inner else ())


def _is_json(text: str) -> bool:
    try:
        _DECODER.decode(text)
    except ValueError:
        return False
    except RecursionError:
        return _is_deep_json(text)
    return True


def _is_deep_json(text: str) -> bool:
    """Whether a text nested deeper than the decoder goes is JSON.

    It is decoded in bands of levels: what is deeper than a band is decoded by itself, and stands as a number in
    the band above.
    """
    marks = _Marks(text, 0, len(text))
    if marks.depths.min() < 0 or marks.depths[-1] != 0:
        return False
    edges = np.flatnonzero((marks.levels % _BAND == 1) & (marks.kinds <= _CLOSE))
    bands: list[list[str]] = [[]]
    held = 0
    for place, kind in zip(marks.places[edges].tolist(), marks.kinds[edges].tolist(), strict=True):
        if kind != _CLOSE:
            bands[-1] += (text[held:place], " 0 ")
            bands.append([])
            held = place
        else:
            band = bands.pop()
            band.append(text[held : place + 1])
            held = place + 1
            if not _is_json("".join(band)):
                return False
    return _is_json("".join([*bands.pop(), text[held:]]))


def _children(text: str, start: int, end: int) -> Sequence[Node]:
    """Members or elements of the JSON value in [start, end)."""
    return Members(_Parts(text, start, end), 0) if _OPENING.match(text, start, end) else ()


def _step(key: str) -> str:
    """The step of a JSON path that a key makes, given as the source writes it."""
    if len(key) == _LONGEST_KEY:
        return f"[{key}…]"
    key = key.rstrip(_WHITE_SPACE)
    return f".{key[1:-1]}" if key[1:-1].isidentifier() else f"[{key}]"


class _Marks:
    """The brackets, commas and colons of a JSON text that stand outside strings."""

    def __init__(self, text: str, start: int, end: int) -> None:
        # A byte for each character; an escaped quote is no quote.
        source = text[start:end].encode("ascii", "replace").replace(rb"\\", b"..").replace(rb"\"", b"..")
        kinds = _KINDS[np.frombuffer(source, np.uint8)]
        self.is_white = np.append(kinds == _WHITE, False)
        places = np.flatnonzero((kinds > 0) & (kinds < _WHITE))
        kinds = kinds[places]
        is_quote = kinds == _QUOTE
        is_mark = ~(np.logical_xor.accumulate(is_quote) | is_quote)
        self.kinds = kinds[is_mark]
        self.places = places[is_mark]
        self.depths = np.cumsum(_STEPS[self.kinds], dtype=np.int32)

    @property
    def levels(self) -> NDArray[np.int32]:
        """Level of the container that each mark belongs to, 1 for the outermost."""
        levels: NDArray[np.int32] = self.depths + (self.kinds == _CLOSE)
        return levels


class _Columns(NamedTuple):
    """What is known of the parts of all containers, a row each, the parts of one container side by side.

    Args:
        starts: First character.
        ends: End of the half-open span.
        colons: The colon after its key; 0 for an element.
        inner: Row of the first part of the container that is its value; 0 if it is none.
        counts: Parts of the container, in the row of the first one.
    """

    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    colons: NDArray[np.int32]
    inner: NDArray[np.int32]
    counts: NDArray[np.int32]


class _Parts:
    """The members and elements of all containers of a JSON text, found in one pass when they are first asked for."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self._span = start, end

    @cached_property
    def columns(self) -> _Columns:
        """The parts, in rows."""
        marks = _Marks(self.text, *self._span)
        # Sorted by level, the marks of a container lie side by side: a bracket, commas, a bracket. A part begins
        # after each of them but the last.
        order = np.flatnonzero(marks.kinds != _COLON)
        levels = marks.levels[order]
        # Numbers of 16 bits are sorted in linear time.
        order = order[np.argsort(levels.astype(np.uint16) if levels.max() < 2**16 else levels, kind="stable")]
        kinds, places, rows = marks.kinds[order], marks.places[order], np.arange(len(order))
        openings, closings = np.flatnonzero(kinds <= _ARRAY), np.flatnonzero(kinds == _CLOSE)

        starts = _after_white(places + 1, marks.is_white)
        ends = places + 1
        ends[closings] = _before_white(places[closings], marks.is_white)
        counts = np.zeros_like(rows)
        counts[openings] = closings - openings
        counts[openings[starts[openings] == places[closings]]] = 0

        in_object = np.repeat(kinds[openings] == _OBJECT, closings - openings + 1)
        row_of = np.zeros_like(marks.places)
        row_of[order] = rows
        # The mark after a comma, or after the colon of a key, is the bracket of a container or the value has none.
        value = np.minimum(order + 1 + in_object, len(row_of) - 1)
        inner = np.where(marks.kinds[value] <= _ARRAY, row_of[value], 0)
        offset = self._span[0]
        colons = np.where(in_object, marks.places[np.minimum(order + 1, len(row_of) - 1)] + offset, 0)
        columns = starts + offset, np.roll(ends, -1) + offset, colons, inner, counts
        return _Columns(*(column.astype(np.int32) for column in columns))


def _after_white(places: _Places, is_white: _Flags) -> _Places:
    """The places, those that are white space moved to the end of it."""
    moved: _Places = places.copy()
    to_move = is_white[places]
    run_ends = np.flatnonzero(is_white[:-1] & ~is_white[1:]) + 1
    moved[to_move] = run_ends[np.searchsorted(run_ends, places[to_move])]
    return moved


def _before_white(places: _Places, is_white: _Flags) -> _Places:
    """The places, those after white space moved to the start of it."""
    moved: _Places = places.copy()
    to_move = is_white[places - 1]
    run_starts = np.flatnonzero(~is_white[:-1] & is_white[1:]) + 1
    moved[to_move] = run_starts[np.searchsorted(run_starts, places[to_move]) - 1]
    return moved
