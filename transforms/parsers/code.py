"""Source code: the outline of its imports, classes and functions, by the syntax trees of tree-sitter.

A tree is visited only where a definition may stand: in files, the bodies of classes and the like, never in the
bodies of functions. Trees have bytes, an outline has code points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transforms.parsers.languages import LANGUAGES, Grammar, Role, grammar_of
from transforms.parsers.outline import Node
from transforms.records import Span

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax
    from tree_sitter import Tree

_DEEPEST = 50
_LONGEST_NAME = 100
_NODES_OF_NAME = 32
_READ_BYTES = 1 << 16
# The parser reports every 100 steps: of programs at most once in 70 bytes, of hostile text once in 10.
_REPORTS_PER_BYTE, _LEAST_REPORTS = 1 / 4, 100
# How often the parser may read a text: of programs at most five times, of hostile text once for each of its marks.
_READINGS, _LEAST_READ = 16, 1 << 18
_NEWLINE = ord("\n")
_SPACES, _WHITE_SPACE = b" \t\f\v", b" \t\f\v\r\n"
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_BLANK_LINE = re.compile(rb"\n[ \t\f\v\r]*\n")
_TERMINATOR = re.compile(rb"[ \t]*[;,]")


def outline(text: str, language: str) -> tuple[Node, ...]:
    """Outline of a program: its imports, classes and functions, in order.

    A node begins with its decorators and the comments right above it, with their indentation, and ends with
    the comment behind it on its line. Parts of a class or namespace are its children; a run of imports is one
    node. Other statements are in no node. Of broken code there is what parses; a text that its parser does not
    come through has no nodes. What stands deeper than 50 definitions is not in the outline.

    Args:
        text: The program; its lines may end in LF, CRLF or CR.
        language: One of `LANGUAGES`.

    Raises:
        ConfigError: If the language is unknown or its grammar is not installed.
    """
    grammar, source, tree = _parsed(text, language)
    if tree is None:
        return ()
    whole = (0, len(source))
    return _Outline(text, source, grammar).nodes([tree.root_node], whole, level=0, at_top=True)


def comments(text: str, language: str) -> list[Span]:
    """Spans of the comments of a program, in order.

    Args:
        text: The program.
        language: One of `LANGUAGES`.

    Raises:
        ConfigError: If the language is unknown or its grammar is not installed.
    """
    from tree_sitter import Query, QueryCursor

    grammar, source, tree = _parsed(text, language)
    if tree is None:
        return []
    query = Query(
        grammar.language, " ".join(f"({kind}) @found" for kind in LANGUAGES[language].comments.split())
    )
    found = QueryCursor(query).captures(tree.root_node).get("found", [])
    place = _places(source)
    return sorted((place(node.start_byte), place(node.end_byte)) for node in found)


def _parsed(text: str, language: str) -> tuple[Grammar, bytes, Tree | None]:
    """The grammar of a program, its bytes as they were parsed, and its syntax tree."""
    grammar = grammar_of(language)
    # To most grammars a carriage return alone is no newline; at a NUL some scanners read all that follows.
    source = _LONE_RETURN.sub(b"\n", text.encode("utf-8", "surrogatepass").replace(b"\0", b" "))
    return grammar, source, _tree(source, grammar)


def _tree(source: bytes, grammar: Grammar) -> Tree | None:
    """The syntax tree; None if the parser takes far more steps than any text needs, or reads it too often.

    It may go round for ever, or look to the end of the text at every mark that opens what is never closed.
    """
    from tree_sitter import Parser

    reports = 0
    left = _LEAST_READ + len(source) * _READINGS

    def read(start: int, _: object) -> bytes:
        nonlocal left
        given = source[start : start + _READ_BYTES] if left > 0 else b""
        left -= len(given)
        return given

    def is_too_long(_: int, __: bool) -> bool:
        nonlocal reports
        reports += 1
        return reports > _LEAST_REPORTS + len(source) * _REPORTS_PER_BYTE or left <= 0

    # A new parser each time: it serves one thread, and its scanner has no state of another text.
    parser = Parser(grammar.language)
    try:
        tree = parser.parse(read, progress_callback=is_too_long)
    except ValueError:
        return None
    return tree if left > 0 else None


class _Outline:
    """The outline of one text.

    Args:
        text: The text.
        source: Its bytes, as they were parsed.
        grammar: The grammar that they were parsed with.
    """

    def __init__(self, text: str, source: bytes, grammar: Grammar) -> None:
        self.text = text
        self.source = source
        self.grammar = grammar
        self.place = _places(source)

    def nodes(self, holders: Sequence[Syntax], span: Span, level: int, at_top: bool) -> tuple[Node, ...]:
        """Nodes of what is defined in `holders`, within a span of bytes."""
        row = _Row(self.source, span)
        for syntax, role in self._members(holders):
            begin, end = syntax.start_byte, syntax.end_byte
            if role is Role.COMMENT or role is Role.ATTRIBUTE:
                row.lead(begin, end, binds=role is Role.ATTRIBUTE)
            elif role is Role.IMPORT:
                row.add_import(begin, end)
            elif role is Role.WRAPPER and self.grammar.sign.search(self.source, begin, end) is None:
                continue
            elif (found := self._definition(syntax)) and (whole := row.span_of(begin, end)):
                children: tuple[Node, ...] = ()
                if found.holders and level < _DEEPEST:
                    children = self.nodes(found.holders, whole, level + 1, at_top and found.is_open)
                if children or found.is_whole:
                    is_alone = at_top and (found.is_alone or bool(children)) and row.begins_line(whole[0])
                    row.add(_Part(*whole, found.name, children, is_alone))
        return tuple([self._node(part) for part in row.parts])

    def _node(self, part: _Part) -> Node:
        return Node(self.place(part.start), self.place(part.end), part.name, part.children, part.is_alone)

    def _members(self, holders: Sequence[Syntax]) -> Iterator[tuple[Syntax, Role]]:
        """What stands in `holders`, and in bodies in them, if its kind matters."""
        roles = self.grammar.roles
        waiting = [child for holder in reversed(holders) for child in reversed(holder.children)]
        while waiting:
            syntax = waiting.pop()
            role = roles.get(syntax.kind_id)
            if role is Role.BODY:
                waiting.extend(reversed(syntax.children))
            elif role is not None:
                yield syntax, role

    def _definition(self, member: Syntax) -> _Definition | None:
        """What a member defines, through all that is wrapped around it."""
        roles, inner = self.grammar.roles, self.grammar.inner
        bodies: list[Syntax] = []
        name_of_bodies, is_open = None, False
        waiting: list[tuple[Syntax, str | None, bool]] = [(member, None, False)]
        while waiting:
            syntax, name, is_called = waiting.pop()
            role = roles[syntax.kind_id]
            if name is None:
                name = self._name(syntax)
            if role is Role.BODY or (is_called and role is Role.FUNCTION):
                bodies.append(syntax)
                name_of_bodies = name_of_bodies or name
                is_open = is_open or role is Role.FUNCTION
            elif role is Role.FUNCTION or role is Role.STATEMENT:
                return _Definition(name, is_alone=role is Role.FUNCTION)
            elif role is Role.CLASS or role is Role.NAMESPACE:
                if any(roles.get(child.kind_id) is Role.BODY for child in syntax.children):
                    return _Definition(name, [syntax], is_open=role is Role.NAMESPACE)
            else:
                is_called = is_called or role is Role.CALL
                inside = [(child, name, is_called) for child in syntax.children if child.kind_id in inner]
                waiting.extend(reversed(inside))
        if not bodies:
            return None
        is_whole = is_open and name_of_bodies is not None
        return _Definition(name_of_bodies, bodies, is_open, is_alone=False, is_whole=is_whole)

    def _name(self, syntax: Syntax) -> str | None:
        fields = self.grammar.names.get(syntax.kind_id)
        if fields is None:
            return None
        return ".".join(filter(None, [self._text_of(syntax, field) for field in fields])) or None

    def _text_of(self, syntax: Syntax, field: str) -> str:
        """The name in a field of a node, or in its child of that kind; empty if it has none."""
        named = syntax.child_by_field_name(field)
        if named is None:
            named = next((child for child in syntax.children if child.type == field), None)
        if named is None:
            return ""
        named = self._identifier(named)
        start = self.place(named.start_byte)
        end = min(self.place(named.end_byte), start + _LONGEST_NAME)
        return " ".join(self.text[start:end].split()).strip("\"'`")

    def _identifier(self, syntax: Syntax) -> Syntax:
        """The first node of those that are names: `f` of `*const f(int)`."""
        waiting = [syntax]
        for _ in range(_NODES_OF_NAME if self.grammar.identifiers else 0):
            if not waiting:
                break
            near = waiting.pop()
            if near.kind_id in self.grammar.identifiers:
                return near
            waiting.extend(reversed(near.children))
        return syntax


@dataclass(slots=True)
class _Definition:
    """What a member of a file or body defines.

    Args:
        name: Its name, if it has one.
        holders: Nodes that its parts are in.
        is_open: Whether its parts are at the top if it is.
        is_alone: Whether it is a chunk by itself at the top, even if it has no parts.
        is_whole: Whether it counts even if it has no parts.
    """

    name: str | None
    holders: Sequence[Syntax] = ()
    is_open: bool = False
    is_alone: bool = True
    is_whole: bool = True


@dataclass(slots=True)
class _Part:
    """A node in the making, in bytes."""

    start: int
    end: int
    name: str | None = None
    children: tuple[Node, ...] = ()
    is_alone: bool = False


class _Row:
    """Siblings, found one after another, with the comments and attributes that lead to them.

    No gap between two of them is looked at twice.

    Args:
        source: The bytes that they are in.
        span: Where they are.
    """

    def __init__(self, source: bytes, span: Span) -> None:
        self.parts: list[_Part] = []
        self._source = source
        self._floor, self._limit = span
        # End of the last part, until something follows that is no comment on its line.
        self._behind: int | None = None
        # How far a run of imports has come, comments included, until something else follows.
        self._imports: int | None = None
        # Comments and attributes that wait for what they lead to.
        self._lead: int | None = None
        self._lead_end, self._lead_binds = 0, False

    def lead(self, begin: int, end: int, *, binds: bool) -> None:
        """Take a comment; or an attribute, which binds to what follows over blank lines."""
        end = self._trimmed(begin, end)
        if self._behind is not None:
            gap = self._source[self._behind : begin]
            if not binds and not gap.strip(_SPACES):
                self._extend(end)
                return
            self._behind = None
        if self._imports is not None:
            self._imports = None if self._source[self._imports : begin].strip() else end
        if not self._leads_to(begin):
            self._lead = begin if binds or self._line_start(begin) is not None else None
        self._lead_end, self._lead_binds = end, binds

    def add_import(self, begin: int, end: int) -> None:
        """Take an import into the run before it, or begin one."""
        if self._imports is not None and not self._source[self._imports : begin].strip():
            self._extend(self._terminated(begin, end))
            self._lead = None
        elif span := self.span_of(begin, end):
            self.add(_Part(*span))
            self._imports = span[1]

    def span_of(self, begin: int, end: int) -> Span | None:
        """Span of a definition with all that leads to it, which leads to nothing else; None if it is empty."""
        end = self._terminated(begin, end)
        if self._leads_to(begin) and self._lead is not None:
            begin = self._lead
        self._lead = None
        line_start = self._line_start(begin)
        begin = max(begin if line_start is None else line_start, self._floor)
        return (begin, end) if begin < end else None

    def add(self, part: _Part) -> None:
        """Take a part; its span is by `span_of`."""
        self.parts.append(part)
        self._floor = self._behind = part.end
        self._imports = None

    def begins_line(self, start: int) -> bool:
        """Whether a line begins at `start`."""
        return start == 0 or self._source[start - 1] == _NEWLINE

    def _extend(self, end: int) -> None:
        end = min(end, self._limit)
        self.parts[-1].end = self._floor = self._behind = max(end, self._floor)
        if self._imports is not None:
            self._imports = self._floor

    def _leads_to(self, begin: int) -> bool:
        """Whether what waits leads to what begins here; if not, it waits no longer."""
        if self._lead is not None:
            gap = self._source[self._lead_end : begin]
            if gap.strip() or (not self._lead_binds and _BLANK_LINE.search(gap)):
                self._lead = None
        return self._lead is not None

    def _trimmed(self, begin: int, end: int) -> int:
        """`end` without the white space before it: some nodes hold their newline."""
        while end > begin and self._source[end - 1] in _WHITE_SPACE:
            end -= 1
        return end

    def _terminated(self, begin: int, end: int) -> int:
        """`end` without white space, behind the semicolon or comma that follows."""
        end = self._trimmed(begin, end)
        terminator = _TERMINATOR.match(self._source, end, self._limit)
        return terminator.end() if terminator else min(end, self._limit)

    def _line_start(self, begin: int) -> int | None:
        """Start of the line if only spaces are before `begin`; None if anything else is."""
        while begin > self._floor and self._source[begin - 1] in _SPACES:
            begin -= 1
        return begin if self.begins_line(begin) else None


def _places(source: bytes) -> Callable[[int], int]:
    """Code points before each byte."""
    if source.isascii():
        return int
    begins = (np.frombuffer(source, np.uint8) & 0xC0) != 0x80
    places = np.zeros(len(source) + 1, np.int32)
    np.cumsum(begins, out=places[1:])
    return places.item
