"""The fixed sample on which a faster encoder must agree with tiktoken before it is used."""

from __future__ import annotations

from itertools import product

_WORDS = (
    "chunk",
    "Chunk's",
    "DON'T",
    "naïve",
    "Straße",
    "ΑΒΓ",
    "дом",
    "שלום",
    "السفينة",
    "जहाज़",
    "เรือ",
    "ទូក",
    "渡し船",
    "时刻表",
    "연락선",
    "e\u0301\u0323",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🇩🇪🇫🇷",
    "123",
    "1234567",
    "٣٤",
    "Ⅷ",
    "½",
    "<|endoftext|>",
    "https://example.org/a?b=c#d",
    "snake_case",
    "camelCase",
    "_",
    "'",
    "/",
    "\u200b",
    "\x00",
    "\u0378",
    "ſ's",
)
_GAPS = (
    "",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    " \n ",
    "\u00a0",
    "\u3000",
    "\u2028",
    ".",
    ".\n",
    ", ",
    "'",
    "/",
    "-\n",
)

SAMPLE: tuple[str, ...] = (
    *(
        left + gap + _WORDS[(place * 7 + shift) % len(_WORDS)]
        for place, left in enumerate(_WORDS)
        for shift, gap in product((0, 5, 11), _GAPS)
    ),
    *(word * 40 for word in _WORDS),
    *(gap * 40 + "x" + gap * 40 for gap in _GAPS),
    " ".join(_WORDS) * 3,
)
