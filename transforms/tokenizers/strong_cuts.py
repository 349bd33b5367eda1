"""Where a byte-pair encoding can be cut without changing the tokens on either side.

tiktoken splits a text into pieces by a pattern and merges bytes only inside a piece. The patterns have no
look-behind and only white space looks ahead, so two classes of neighbouring characters often decide that no
piece can hold both. There the token count of a text is the sum of the counts of its two sides.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

_WHITE_SPACE = frozenset("\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(c) for c in range(0x2000, 0x200B)
}
NEVER, ALWAYS, AFTER_BLACK = 0, 1, 2
# Letter, mark, number, space, other white space, line break, punctuation and the rest, apostrophe, slash, unassigned.
CLASSES = "LMNSTRPAXU"
WHITE_CLASSES = "STR"

# The rules of each family, see `StrongCuts`. Unassigned code points are in none: engines differ on them.
FAMILIES: Mapping[str, Sequence[str]] = {
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
# Pairs of characters whose verdict is remembered; more hardly ever occur in one corpus.
_REMEMBERED_PAIRS = 1 << 16


def character_class(character: str) -> str:
    """Class of a character, one of `CLASSES`."""
    if character in "\r\n":
        return "R"
    if character == " ":
        return "S"
    if character in _WHITE_SPACE:
        return "T"
    if character == "'":
        return "A"
    if character == "/":
        return "X"
    category = unicodedata.category(character)
    if category == "Cn":
        return "U"
    return category[0] if category[0] in "LMN" else "P"


class StrongCuts(dict[str, int]):
    """The strong cuts of one family of encodings: for each pair of neighbouring characters a verdict.

    Verdicts are worked out as pairs are met. They are read by subscript where many are needed, else by `at`.

    Args:
        rules: Left classes, a colon, right classes; a star at the end if the cut is strong only where no white
            space comes before the left character.

    Attributes:
        verdicts: The verdict of each pair of classes; never, if it is in none.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        super().__init__()
        self.verdicts = {
            (left, right): AFTER_BLACK if rights.endswith("*") else ALWAYS
            for lefts, rights in (rule.split(":") for rule in rules)
            for left in lefts
            for right in rights.rstrip("*")
        }

    def __missing__(self, pair: str) -> int:
        if len(self) >= _REMEMBERED_PAIRS:
            self.clear()
        left, right = map(character_class, pair)
        verdict = self[pair] = self.verdicts.get((left, right), NEVER)
        return verdict

    def at(self, text: str, position: int) -> bool:
        """Whether a cut at a position, inside the text, is strong."""
        verdict = self[text[position - 1 : position + 1]]
        return verdict == ALWAYS or (verdict == AFTER_BLACK and after_black(text, position))


def after_black(text: str, position: int) -> bool:
    """Whether the character before the one at the left of a position is none of white space."""
    return position < 2 or text[position - 2] not in _WHITE_SPACE


@lru_cache
def strong_cuts(encoding: str) -> StrongCuts | None:
    """Strong cuts of a tiktoken encoding, or None if nobody has proved any for it."""
    family = _FAMILY_OF.get(encoding)
    return None if family is None else StrongCuts(FAMILIES[family])
