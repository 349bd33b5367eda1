"""Blocks that a table brings along, to one text with spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from transforms.errors import ReadError
from transforms.records import Block, BlockKind, Location

_KINDS: Mapping[Any, BlockKind] = {kind: kind for kind in get_args(BlockKind)}
_JOINT = "\n\n"


def join_blocks(rows: Iterable[Mapping[str, Any] | None]) -> tuple[str, tuple[Block, ...]]:
    """The texts of `rows` joined by a blank line, and where in it each block stands.

    A row holds `text` and may hold `kind` (unknown ones become `other`), `level`, `page`, `box` (left, top,
    right, bottom), `images` and `attributes`. Rows without text are left out.

    Raises:
        ReadError: If a value is not of such a kind.
    """
    texts: list[str] = []
    blocks: list[Block] = []
    start = 0
    for row in rows:
        if not row or not row["text"]:
            continue
        try:
            text = row["text"] if isinstance(row["text"], str) else row["text"].decode()
            blocks.append(_block(row, text, start))
        except (TypeError, ValueError) as error:
            raise ReadError("bad_blocks", f"block {len(blocks)} cannot be read: {error}") from error
        texts.append(text)
        start += len(text) + len(_JOINT)
    return _JOINT.join(texts), tuple(blocks)


def _block(row: Mapping[str, Any], text: str, start: int) -> Block:
    kind = _KINDS.get(row.get("kind"), "other")
    is_heading = kind == "heading"
    return Block(
        kind=kind,
        start=start,
        end=start + len(text),
        level=min(max(int(row.get("level") or 1), 1), 6) if is_heading else None,
        title=text.strip() if is_heading else None,
        locations=_locations(row.get("page"), row.get("box")),
        images=tuple(map(str, row.get("images") or ())),
        attributes={str(k): str(v) for k, v in dict(row.get("attributes") or {}).items() if v is not None},
    )


def _locations(page: Any, box: Any) -> tuple[Location, ...]:
    if page is None:
        return ()
    if not box:
        return (Location(int(page)),)
    left, top, right, bottom = map(float, box.values() if isinstance(box, dict) else box)
    return (Location(int(page), (left, top, right, bottom)),)
