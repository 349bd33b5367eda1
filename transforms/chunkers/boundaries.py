"""Where cuts may fall: the ladder of blank line, line, sentence, clause, word, grapheme.

A level looks for its boundaries only around the place where a cut is wanted, by searching for the marks that make
one, so that a text costs what its cuts cost and not what its characters cost. A boundary is the position after its
mark: what divides stays with the piece on its left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from transforms.chunkers import compiled
from transforms.chunkers.levels import MARK_REACH, Level, MarkLevel, any_of
from transforms.records import Block

if TYPE_CHECKING or not compiled.native:
    from transforms.chunkers.levels import AnyOf as AnyOf
    from transforms.chunkers.levels import KeepingWhole as KeepingWhole
    from transforms.chunkers.levels import PlaceLevel as PlaceLevel
    from transforms.chunkers.levels import SeparatorLevel as SeparatorLevel
    from transforms.chunkers.levels import WordLevel as WordLevel
else:
    from transforms.chunkers.native import AnyOf as AnyOf
    from transforms.chunkers.native import KeepingWhole as KeepingWhole
    from transforms.chunkers.native import PlaceLevel as PlaceLevel
    from transforms.chunkers.native import SeparatorLevel as SeparatorLevel
    from transforms.chunkers.native import WordLevel as WordLevel

# White space within a line.
_BLANKS = " \t\u3000\u00a0\x0b\x0c\x1c\x1d\x1e\x1f\x85\u1680\u2028\u2029\u202f\u205f" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_STOPS_BEFORE_WHITE_SPACE = ".!?…"
_STOPS = _STOPS_BEFORE_WHITE_SPACE + "。！？；｡؟۔।॥።፧។៕။։᠃།"
_PAUSES_BEFORE_WHITE_SPACE = ",;:"
_PAUSES = _PAUSES_BEFORE_WHITE_SPACE + "，、；：،؛"
_CLOSERS = "\"'”’»)]}」』）】》〉〕］｝"
# In some languages these close a quotation, in others they open one.
_CLOSERS_BEFORE_WHITE_SPACE = _CLOSERS + "“‘«"
# Words left out of a quotation: the dots end no sentence.
_OMISSIONS = frozenset(["[…]", "(…)", "[...]", "(...)"])
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st vs etc al approx inc ltd co corp dept est fig figs no nos vol ed eds pp sec cf e.g i.e "
    "eg ie jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m gen col lt sgt capt rev hon gov sen rep "
    "bzw ca z.b d.h usw nr bd hr fr abb".split()
)
_SPACED_BLANK_LINE = re.compile(r"\n[^\S\n]+\n")
_BLANK_LINES = re.compile(r"(?:\r\n|\n|\r(?!\n))(?:[^\S\n\r]*(?:\r\n|\n|\r(?!\n)))+")
_BULLETS = "-*+•‣◦–·"
_ITEM = rf"(?=[ \t]*[{_BULLETS}(0-9])(?=[ \t]*(?:[{_BULLETS}]|\(?[0-9]{{1,3}}[.)])[ \t])"
# In the order that fails soonest on a line of prose.
_PARAGRAPHS = re.compile(rf"\n(?:\n+(?:[^\S\n]+\n+)*|[^\S\n]+\n(?:[^\S\n]*\n)*|{_ITEM})")
_ANY_PARAGRAPHS = re.compile(rf"(?:\r\n|\n|\r(?!\n))(?:(?:[^\S\n\r]*(?:\r\n|\n|\r(?!\n)))+|{_ITEM})")
# Stops and pauses that may be accepted. A pattern that begins with a set of characters is searched five times faster
# than one that begins with a choice.
_LIKELY_STOPS = re.compile(
    f"[{re.escape(_STOPS)}](?:(?<=[{_STOPS.removeprefix(_STOPS_BEFORE_WHITE_SPACE)}])"
    f"|(?![^\\s\u2e80-\u9fff\\[{re.escape(_CLOSERS_BEFORE_WHITE_SPACE)}]))"
)
_LIKELY_PAUSES = re.compile(
    f"[{_PAUSES}](?:(?<=[{_PAUSES.removeprefix(_PAUSES_BEFORE_WHITE_SPACE)}])|(?=\\s))"
)
_CLOSING = re.compile(f"[{re.escape(_CLOSERS)}]*")
# Closers, references as in `so.[12]`, and a French quotation mark, which has a space before it.
_CLOSING_BEFORE_WHITE_SPACE = re.compile(
    f"[{re.escape(_CLOSERS_BEFORE_WHITE_SPACE)}]*(?:\\[[0-9]{{1,3}}\\])*[{re.escape(_CLOSERS)}]*"
    "(?:[ \u00a0\u202f]»(?=\\s|\\Z))?"
)
# A link inside a longer word, such as `[text](link)` or `href="link"`: without what follows it in brackets, quotes and
# scripts that put no space after it.
_LINK_CHARACTER = r"[^\s<>()\[\]{}|\"'`\\^\u3000-\u30ff\uff00-\uffef]"
_LINK_SCHEME = re.compile(r"(?:https?|ftps?|file|s3|gs|abfss?)\Z")
_LINK_REST = re.compile(rf"(?:{_LINK_CHARACTER}+|\([^\s<>\"()]*\))+")
_LONGEST_SCHEME = len("abfss")
# Long enough for any abbreviation with the bracket before it.
_ABBREVIATION_REACH = 10


def blank_lines(text: str) -> Level:
    """Boundaries after blank lines."""
    if compiled.native:
        level: Level = compiled.native.BlankLineLevel(text)
        return level
    if "\r" not in text and not has_spaced_blank_line(text):
        return SeparatorLevel(text, "\n\n")
    return PlaceLevel(*spans_of_blank_lines(text))


def spans_of_blank_lines(text: str) -> tuple[list[int], list[int]]:
    """Where blank lines stand, and where what follows them begins.

    Args:
        text: The text.
    """
    places = [match.span() for match in _BLANK_LINES.finditer(text)]
    return [start for start, _ in places], [end for _, end in places]


def paragraphs(text: str) -> Level:
    """Boundaries after blank lines, and before each line that is an item of a list."""
    native = compiled.native
    return PlaceLevel(
        *(native.spans_between_paragraphs(text, _BULLETS) if native else spans_between_paragraphs(text))
    )


def spans_between_paragraphs(text: str) -> tuple[list[int], list[int]]:
    """Where blank lines and line breaks before items of lists stand, and where what follows them begins.

    Args:
        text: The text.
    """
    places = [match.span() for match in (_PARAGRAPHS if "\r" not in text else _ANY_PARAGRAPHS).finditer(text)]
    return [start for start, _ in places], [end for _, end in places]


def lines(text: str) -> Level:
    """Boundaries after lines."""
    return MarkLevel(text, ["\n", "\r"], _after_line) if "\r" in text else SeparatorLevel(text, "\n")


def sentences(text: str) -> Level:
    """Boundaries after sentences, as far as punctuation tells."""
    if compiled.native:
        level: Level = _compiled_rules().level(text)
        return level
    return sentence_marks(text)


@lru_cache
def _compiled_rules() -> Any:
    """How sentences end, for all texts."""
    return compiled.native and compiled.native.SentenceRules(
        _STOPS,
        _STOPS_BEFORE_WHITE_SPACE,
        _CLOSERS,
        _CLOSERS_BEFORE_WHITE_SPACE,
        _OMISSIONS,
        _is_abbreviation,
        MARK_REACH,
    )


def sentence_marks(text: str) -> MarkLevel:
    """Boundaries after sentences, found in Python."""
    marks = _STOPS_BEFORE_WHITE_SPACE if text.isascii() else _STOPS
    return MarkLevel(text, marks, _after_sentence, _LIKELY_STOPS)


def clauses(text: str) -> Level:
    """Boundaries after clauses."""
    marks = _PAUSES_BEFORE_WHITE_SPACE if text.isascii() else _PAUSES
    return MarkLevel(text, marks, _after_clause, _LIKELY_PAUSES)


def words(text: str) -> Level:
    """Boundaries after white space."""
    return WordLevel(text)


def links(text: str) -> Level:
    """Boundaries before and after links, for words that are larger than the link in them."""
    edges: list[int] = []
    held = 0
    at = text.find("://")
    while at >= 0:
        scheme = _LINK_SCHEME.search(text, max(held, at - _LONGEST_SCHEME), at)
        rest = _LINK_REST.match(text, at + len("://")) if scheme else None
        if scheme and rest:
            held = rest.end()
            edges += [scheme.start(), held]
        at = text.find("://", max(held, at + 1))
    return PlaceLevel(edges, edges)


def cells(text: str) -> Level:
    """Boundaries between the cells of a Markdown table's row."""
    return MarkLevel(text, "|", _after_cell)


def block_edges(blocks: Sequence[Block]) -> Level:
    """Boundaries before and after blocks; what lies between two blocks can be a piece of its own.

    Args:
        blocks: The blocks, in order.
    """
    edges = sorted({edge for block in blocks for edge in (block.start, block.end)})
    return PlaceLevel(edges, edges)


def separators(text: str, strings: Sequence[str]) -> Level:
    """Boundaries after any of some strings, the longest first where several match.

    Args:
        text: The text.
        strings: The separators, none empty.
    """
    if len(strings) == 1:
        return SeparatorLevel(text, strings[0])
    places = matches(text, strings)
    return PlaceLevel([start for start, _ in places], [end for _, end in places])


def matches(text: str, strings: Sequence[str]) -> list[tuple[int, int]]:
    """Where any of some strings stands, the longest first where several match.

    Args:
        text: The text.
        strings: The strings, none empty.
    """
    present = tuple(sorted((string for string in strings if string in text), key=len, reverse=True))
    return [match.span() for match in any_of(present).finditer(text)] if present else []


def delimiters(text: str, strings: Sequence[str]) -> Level:
    """Boundaries after any of some strings, found as they are needed if each is a single character.

    Args:
        text: The text.
        strings: The strings, none empty.
    """
    present = [string for string in strings if string in text]
    if len(present) == 1 and len(present[0]) == 1:
        return SeparatorLevel(text, present[0])
    if all(len(string) == 1 for string in present):
        return MarkLevel(text, present, lambda _text, at: at + 1)
    places = matches(text, present)
    return PlaceLevel([start for start, _ in places], [end for _, end in places])


def has_spaced_blank_line(text: str) -> bool:
    """Whether some line between two others consists of white space only.

    Args:
        text: The text.
    """
    # A look that is cheaper than the search.
    return any(map(str.isspace, text.split("\n"))) and bool(_SPACED_BLANK_LINE.search(text))


def _after_line(text: str, at: int) -> int:
    return at + 2 if text.startswith("\r\n", at) else at + 1


def _after_sentence(text: str, at: int) -> int | None:
    """The end of the sentence that the stop at `at` ends; none in `3.14`, after `Dr.`, after an initial."""
    end = at + 1
    if end < len(text) and text[end] in _STOPS:
        return None  # the last of several stops ends the sentence
    wants_space = text[at] in _STOPS_BEFORE_WHITE_SPACE
    match = (_CLOSING_BEFORE_WHITE_SPACE if wants_space else _CLOSING).match(text, end)
    end = match.end() if match else end
    if text[at] in ".…" and (text[at - 1 : at + 2] in _OMISSIONS or text[at - 3 : at + 2] in _OMISSIONS):
        return None
    if end == len(text) or not wants_space:
        return end
    if text[at] == "…" and "\u2e80" <= text[end] <= "\u9fff":
        return end  # Chinese and Japanese put no space after it
    if not text[end].isspace():
        return None
    if text[at] == "." and end == at + 1 and _is_abbreviation(text, at):
        return None
    return end + 1


def _is_abbreviation(text: str, at: int) -> bool:
    """Whether the full stop at `at` belongs to its word: an abbreviation, an initial or a list number."""
    head = text[max(0, at - _ABBREVIATION_REACH) : at]
    word = head.split()[-1] if head and not head[-1].isspace() else ""
    if word.isdigit() and len(word) <= 3:
        line = head[: -len(word)].rstrip(_BLANKS)
        return not line or line[-1] in "\n\r"
    word = word.lstrip("([{\"'“‘«")
    if len(word) == 1 and word.isalpha():
        return word.isupper()
    if word.lower() == "no":
        return text[at + 2 : at + 3].isdigit()
    return word.lower() in _ABBREVIATIONS


def _after_clause(text: str, at: int) -> int | None:
    if text[at] not in _PAUSES_BEFORE_WHITE_SPACE:
        return at + 1
    return at + 2 if at + 1 < len(text) and text[at + 1].isspace() else None


def _after_cell(text: str, at: int) -> int | None:
    opens_row = at == 0 or text[at - 1] in "\n\r"
    closes_row = at + 1 == len(text) or text[at + 1] in "\n\r"
    escaped = at > 0 and text[at - 1] == "\\"
    return None if opens_row or closes_row or escaped else at + 1
