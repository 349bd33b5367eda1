"""RAGFlow's position tags: where on its page a text stands, written into the text itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from transforms.records import Block, Location

_PAGE = "[1-9][0-9]{0,8}"
_NUMBER = r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_TAG = re.compile(rf"@@({_PAGE}(?:-{_PAGE})*)" + rf"\t{_NUMBER}" * 4 + "##")
_NEWLINE = r"(?:\r\n|\n|\r(?!\n))"
_BLANK_LINE = re.compile(rf"{_NEWLINE}[^\S\r\n]*{_NEWLINE}")


def take_tags(text: str, blocks: Sequence[Block] = ()) -> tuple[str, tuple[Block, ...]]:
    """A text without its position tags, and its blocks with what the tags say as their locations.

    A tag is `@@pages\\tx0\\tx1\\ttop\\tbottom##`; pages count from 1 and are one or several, each named: `3`, `3-4`.
    It locates the text before it, back to the tag before or to a blank line; several tags in a row locate the same
    text. What only looks like a tag stays. On several pages the box is the same for each; as RAGFlow has it, `top`
    is on the first of them and `bottom` on the last.

    Args:
        text: The text, tags and all.
        blocks: Its blocks, in order and without overlap. See `locate` for what becomes of them.
    """
    tags = list(_TAG.finditer(text))
    if not tags:
        return text, tuple(blocks)
    starts, moves, removed = [], [], 0
    for tag in tags:
        starts.append(tag.start())
        moves.append((tag.end(), removed))
        removed += len(tag[0])

    def moved(place: int) -> int:
        """Where a place of the text is once the tags are gone; a place in a tag is where the tag was."""
        before = bisect_right(starts, place) - 1
        if before < 0:
            return place
        end, gone = moves[before]
        return min(place, starts[before]) - gone if place < end else place - gone - (end - starts[before])

    kept = [replace(block, start=moved(block.start), end=moved(block.end)) for block in blocks]
    located = [
        replace(block, start=moved(block.start), end=moved(block.end)) for block in _located(text, tags)
    ]
    text = _TAG.sub("", text)
    return text, locate([block for block in kept if text[block.start : block.end].strip()], located)


def locate(blocks: Sequence[Block], located: Sequence[Block]) -> tuple[Block, ...]:
    """Blocks with the locations of those located texts that end in them; the other located texts between them.

    Args:
        blocks: Blocks of a text, in order and without overlap.
        located: Other blocks of the same text, which know their locations, in order and without overlap.
    """
    starts = [block.start for block in blocks]
    gained: dict[int, list[Location]] = {}
    between: list[Block] = []
    for text in located:
        place = bisect_right(starts, text.end - 1) - 1
        held = blocks[place].end if place >= 0 else 0
        if text.end <= held:
            gained.setdefault(place, []).extend(text.locations)
        else:
            between.append(replace(text, start=max(text.start, held)))
    kept = [
        replace(block, locations=tuple(dict.fromkeys((*block.locations, *gained.get(place, ())))))
        for place, block in enumerate(blocks)
    ]
    return tuple(sorted([*kept, *between], key=lambda block: block.start))


def _located(text: str, tags: Sequence[re.Match[str]]) -> Iterator[Block]:
    """A paragraph for each text that tags locate, in the text that still holds them."""
    start = end = held = 0
    locations: list[Location] = []
    for tag in tags:
        black_end = held + len(text[held : tag.start()].rstrip())
        if black_end > held:
            if locations:
                yield Block("paragraph", start, end, locations=tuple(dict.fromkeys(locations)))
            for blank in _BLANK_LINE.finditer(text, held, black_end):
                held = blank.end()
            start, end = black_end - len(text[held:black_end].lstrip()), black_end
            locations = []
        if end:
            locations += _locations(tag)
        held = tag.end()
    if locations:
        yield Block("paragraph", start, end, locations=tuple(dict.fromkeys(locations)))


def _locations(tag: re.Match[str]) -> Iterator[Location]:
    left, right, top, bottom = (float(tag[group]) for group in range(2, 6))
    for page in dict.fromkeys(map(int, tag[1].split("-"))):
        yield Location(page, (left, top, right, bottom))
