"""markdown-it for top-level blocks: the same blocks in half the time, in linear time on any text.

Links may have any scheme, and stay as they are written: nothing is rendered here. Three things more differ
from markdown-it, and well-meant text shows none of them:

- Containers nest 20 levels deep, twenty quotes or ten lists, and what is deeper is a paragraph; markdown-it
  drops the rest of the text.
- Quotes look at 8 times as many lines as the text has, and then `>` begins a paragraph; markdown-it is
  quadratic.
- A table may leave out any number of cells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from markdown_it import MarkdownIt, rules_block
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

_DEEPEST = 20
_LOOKS_PER_LINE = 8
_DASHES = frozenset("|:-")

_Rule = Callable[[StateBlock, int, int, bool], bool]


class TopLevel(StateBlock):
    """The state of a parse that keeps the tokens of top-level blocks only.

    Args:
        text: The text; its lines end in LF.
        markdown: What `commonmark` made.
    """

    def __init__(self, text: str, markdown: MarkdownIt) -> None:
        super().__init__("", markdown, {}, [])
        self.src = text
        self._mark(text.split("\n"))
        self.looks_left = _LOOKS_PER_LINE * self.lineMax
        self._unused = Token("", "", 0)

    def _mark(self, lines: list[str]) -> None:
        """Mark the lines as markdown-it does, which looks at each character of their indentation."""
        if not lines[-1].strip(" \t"):
            lines.pop()
        self.lineMax = len(lines)
        self.tShift = [len(line) - len(line.lstrip(" \t")) for line in lines] + [0]
        self.sCount = [
            len(line[:shift].expandtabs(4)) if shift else 0
            for line, shift in zip(lines, self.tShift, strict=False)
        ] + [0]
        self.bsCount = [0] * (self.lineMax + 1)
        self.bMarks = [0, *accumulate(len(line) + 1 for line in lines)]
        self.eMarks = [start - 1 for start in self.bMarks[1:]] + [len(self.src)]
        self.bMarks[-1] = len(self.src)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Add a token if it begins a top-level block or an item of a list, or is the text of a heading."""
        if nesting >= 0 and (self.level == 0 or (self.level == 1 and ttype in {"inline", "list_item_open"})):
            return super().push(ttype, tag, nesting)
        self.level += nesting
        return self._unused

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:  # noqa: N802, N803
        """Nothing, where rules want the content of code and HTML: a block is its span."""
        return ""


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802
        return True

    def normalizeLink(self, url: str) -> str:  # noqa: N802
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        return link


class _Blocks(ParserBlock):
    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803
        # A quote first looks for its end, over lines that may prove not to be its own.
        if isinstance(state, TopLevel) and state.parentType == "blockquote":
            state.looks_left -= endLine - startLine
        super().tokenize(state, startLine, endLine)


@lru_cache(maxsize=1)
def commonmark() -> MarkdownIt:
    """The parser of CommonMark with tables; its block rules want a `TopLevel` state."""
    markdown = _Markdown("commonmark", {"maxNesting": _DEEPEST + 2})
    markdown.block = _Blocks()
    table, fence, quote, hr, items, reference, html, heading, text = (
        (_table, ""),
        (rules_block.fence, "`~"),
        (rules_block.blockquote, ">"),
        (rules_block.hr, "*-_"),
        (rules_block.list_block, "*+-0123456789"),
        (rules_block.reference, "["),
        (rules_block.html_block, "<"),
        (rules_block.heading, "#"),
        (_text, ""),
    )
    ends_quote = (fence, quote, hr, items, html, heading)
    chains: dict[str, tuple[_Rule, list[str]]] = {
        "block": (
            _any(table, fence, (_quote, ">"), hr, (_list, items[1]), reference, html, heading, text),
            [],
        ),
        "ends_paragraph": (_any(table, *ends_quote), ["paragraph", "reference"]),
        "ends_quote": (_any(*ends_quote), ["blockquote"]),
        "ends_list": (_any(fence, quote, hr), ["list"]),
    }
    ruler = markdown.block.ruler
    for name, (rule, ends) in chains.items():
        ruler.push(name, rule, {"alt": ends})
    ruler.enableOnly(["code", *chains])
    for each in (ruler, markdown.inline.ruler, markdown.inline.ruler2):
        each.getRules("")  # Its cache is filled on first use, which two threads must not do at once.
    return markdown


def _any(*rules: tuple[_Rule, str]) -> _Rule:
    """One rule for many, each given with the characters that it may begin with, or "" for any."""
    always = tuple(rule for rule, first in rules if not first)
    by_first = {
        character: tuple(rule for rule, first in rules if not first or character in first)
        for character in "".join(first for _, first in rules)
    }

    def any_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
        start = state.bMarks[line] + state.tShift[line]
        for rule in by_first.get(state.src[start : start + 1], always):
            if rule(state, line, end, silent):
                return True
        return False

    return any_rule


def _quote(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    if state.level >= _DEEPEST or (isinstance(state, TopLevel) and state.looks_left < 0):
        return False
    return rules_block.blockquote(state, line, end, silent)


def _list(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    return state.level < _DEEPEST and rules_block.list_block(state, line, end, silent)


def _table(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """A table as one token; markdown-it makes four of each cell."""
    dashes = state.bMarks[line + 1] + state.tShift[line + 1]
    if state.src[dashes : dashes + 1] not in _DASHES:
        return False
    if not rules_block.table(state, line, end, True):
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"
    (is_end,) = state.md.block.ruler.getRules("blockquote")
    row = line + 2
    while row < end and state.blkIndent <= state.sCount[row] < state.blkIndent + 4:
        if not state.src[state.bMarks[row] : state.eMarks[row]].strip() or is_end(state, row, end, True):
            break
        row += 1
    state.parentType, state.line = outer, row
    state.push("table", "table", 0).map = [line, row]
    return True


def _text(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """A paragraph or a setext heading; markdown-it looks for one, then for the other."""
    outer, state.parentType = state.parentType, "paragraph"
    (is_end,) = state.md.block.ruler.getRules("paragraph")
    level = 0
    after = line + 1
    while after < state.lineMax and not state.isEmpty(after):
        indent = state.sCount[after] - state.blkIndent
        if indent < 4:
            if indent >= 0 and (level := _underline(state, after)):
                break
            # A quote marks with -1 the lines that it has taken for the rest of a paragraph.
            if state.sCount[after] >= 0 and is_end(state, after, end, True):
                break
        after += 1
    state.parentType = outer
    if level:
        state.line = after + 1
        state.push("heading_open", f"h{level}", 1).map = [line, state.line]
        state.push("inline", "", 0).content = state.src[state.bMarks[line] : state.eMarks[after - 1]]
        state.push("heading_close", f"h{level}", -1)
    else:
        state.line = after
        state.push("paragraph", "p", 0).map = [line, after]
    return True


def _underline(state: StateBlock, line: int) -> int:
    start = state.bMarks[line] + state.tShift[line]
    mark = state.src[start]
    if mark not in "=-" or state.src[start : state.eMarks[line]].rstrip(" \t").strip(mark):
        return 0
    return 1 if mark == "=" else 2
