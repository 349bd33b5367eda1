"""Where a byte-pair encoding can be cut without changing the tokens on either side.

tiktoken splits a text into pieces by a pattern and merges bytes only inside a piece. The patterns have no
look-behind and only white space looks ahead, so two classes of neighbouring characters often decide that no
piece can hold both. There the token count of a text is the sum of the counts of its two sides.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Letter, mark, number, space, other white space, line break, punctuation and the rest, apostrophe, slash, unassigned.
_CLASSES = "LMNSTRPAXU"
_WHITE_SPACE = frozenset("\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(c) for c in range(0x2000, 0x200B)
}
_ALWAYS, _AFTER_BLACK = 1, 2

# Per family: left class -> right classes; a star means "only if no white space comes before the left character".
_FAMILIES = {
    "cl100k": ("L:NSTRPMAX", "N:LSTRPMAX", "PMAX:NST", "R:LNPMAX", "ST:N*", "T:PMAX*"),
    "o200k": ("L:NSTRPX", "N:LSTRPMAX", "M:NST", "PAX:NST", "R:LNMPA", "ST:N*", "T:PAX*"),
    "r50k": ("L:NSTRPMAX", "N:LSTRPMAX", "PMAX:NSTR", "PMX:L", "TR:LNPMAX*"),
}
_FAMILY_OF = {
    "cl100k_base": "cl100k",
    "o200k_base": "o200k",
    "o200k_harmony": "o200k",
    "gpt2": "r50k",
    "r50k_base": "r50k",
    "p50k_base": "r50k",
    "p50k_edit": "r50k",
}
# A word or a run of punctuation ends well within this; beyond it a direct count is as cheap as looking on.
_REACH = 256


class _CharacterClasses(dict[str, int]):
    """Class of each character, filled as characters are met (there are 1.1 million at most)."""

    def __missing__(self, character: str) -> int:
        category = unicodedata.category(character)
        if character in "\r\n":
            name = "R"
        elif character == " ":
            name = "S"
        elif character in _WHITE_SPACE:
            name = "T"
        elif character == "'":
            name = "A"
        elif character == "/":
            name = "X"
        elif category == "Cn":
            name = "U"
        else:
            name = category[0] if category[0] in "LMN" else "P"
        value = self[character] = _CLASSES.index(name)
        return value


_CLASS_OF = _CharacterClasses()


@dataclass(frozen=True, slots=True)
class StrongCuts:
    """The strong cuts of one family of encodings.

    Args:
        table: For each pair of classes whether a cut between them is strong.
    """

    table: bytes

    def first(self, text: str, start: int, end: int) -> int | None:
        """First strong cut in [start, end], or None if there is none within reach."""
        if start == 0:
            return 0
        table, classes, width = self.table, _CLASS_OF, len(_CLASSES)
        left = classes[text[start - 1]]
        for position in range(start, min(end, start + _REACH)):
            right = classes[text[position]]
            strength = table[left * width + right]
            if strength and (strength == _ALWAYS or position < 2 or text[position - 2] not in _WHITE_SPACE):
                return position
            left = right
        return end if end == len(text) and end - start <= _REACH else None

    def last(self, text: str, start: int, end: int) -> int:
        """Last strong cut in [start, end]; `start` must be one, and is the answer if no later one is within reach."""
        if end == len(text):
            return end
        table, classes, width = self.table, _CLASS_OF, len(_CLASSES)
        right = classes[text[end]]
        for position in range(end, max(start, end - _REACH), -1):
            left = classes[text[position - 1]]
            strength = table[left * width + right]
            if strength and (strength == _ALWAYS or position < 2 or text[position - 2] not in _WHITE_SPACE):
                return position
            right = left
        return start


@lru_cache
def strong_cuts(encoding: str) -> StrongCuts | None:
    """Strong cuts of a tiktoken encoding, or None if nobody has proved any for it."""
    family = _FAMILY_OF.get(encoding)
    if family is None:
        return None
    width = len(_CLASSES)
    table = bytearray(width * width)
    for rule in _FAMILIES[family]:
        lefts, rights = rule.split(":")
        strength = _AFTER_BLACK if rights.endswith("*") else _ALWAYS
        for left in lefts:
            for right in rights.rstrip("*"):
                table[_CLASSES.index(left) * width + _CLASSES.index(right)] = strength
    return StrongCuts(bytes(table))
