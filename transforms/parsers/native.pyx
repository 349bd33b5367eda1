# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=False, binding=False, auto_pickle=False
"""The inner loops of parsing, compiled.

Each thing here has a twin in Python, named in its docstring, which says what is right; the tests hold the two
together.
"""

from functools import lru_cache

from transforms.parsers.html_rows import STRUCTURE, spanned
from transforms.parsers.html_tags import _UNSEEN, BLOCKS, LINES_OF_THEIR_OWN, one_line, unescaped
from transforms.parsers.restructured_titles import DEEPEST, ENOUGH, plain, width
from transforms.records import LONGEST_TITLE, Block

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport (
    Py_UNICODE_ISSPACE,
    PyUnicode_DATA,
    PyUnicode_Find,
    PyUnicode_FindChar,
    PyUnicode_KIND,
    PyUnicode_READ,
    PyUnicode_Substring,
)
from libc.stdint cimport uint64_t
from libc.string cimport memchr

cdef extern from *:
    """
    #include "structmember.h"
    #define LONGEST_NAME 8
    #define MOST_NAMES 16
    #define FIELDS 8
    """
    enum:
        LONGEST_NAME
        MOST_NAMES
        # How many fields a block has.
        FIELDS
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member
    object PyType_GenericNew(PyTypeObject* type, PyObject* args, PyObject* keywords)
    # What this file was when it was compiled; hatch_build.py tells.
    unsigned int SOURCE_CRC

source_crc = SOURCE_CRC

cdef Py_ssize_t _ENOUGH = ENOUGH, _LONGEST_TITLE = LONGEST_TITLE
cdef int _DEEPEST = DEEPEST

# Where in a block its fields are, in their order.
if len(Block.__slots__) != FIELDS:
    raise ImportError("a block has other fields than those that are filled here")
cdef Py_ssize_t[FIELDS] _places
for _field, _member in enumerate(map(Block.__dict__.get, Block.__slots__)):
    _places[_field] = (<PyMemberDescrObject*>_member).d_member.offset


cdef inline void _fill(block, int field, value) noexcept:
    Py_INCREF(value)
    (<PyObject**>(<char*><PyObject*>block + _places[field]))[0] = <PyObject*>value


cdef _block(kind, Py_ssize_t start, Py_ssize_t end, level=None, title=None):
    """As `Block`, which takes five times as long."""
    block = PyType_GenericNew(<PyTypeObject*>Block, NULL, NULL)
    _fill(block, 0, kind)
    _fill(block, 1, start)
    _fill(block, 2, end)
    _fill(block, 3, level)
    _fill(block, 4, title)
    _fill(block, 5, ())
    _fill(block, 6, ())
    _fill(block, 7, {})
    return block


cdef enum:
    # Names of the elements of a table, as `html_rows.STRUCTURE` has them.
    CELLS
    NAMES
    ROWS
    TABLES
    HEADS
    BODIES
    FEET
    CAPTIONS

cdef enum:
    # Names of `html_tags.BLOCKS`, counted from the headings.
    HEADINGS = 6
    TABLE = 6
    PRE = 7
    TITLE = 8


cdef struct Line:
    # Where it begins, where what is on it begins and ends, and the columns before that; none of a blank line.
    Py_ssize_t start, first, end, indent


cdef inline bint _is_mark(Py_UCS4 c) noexcept:
    """Whether a character is one of `string.punctuation`."""
    return c"!" <= c <= c"/" or c":" <= c <= c"@" or c"[" <= c <= c"`" or c"{" <= c <= c"~"


cdef inline bint _is_digit(Py_UCS4 c) noexcept:
    return c"0" <= c <= c"9"


cdef inline bint _is_letter(Py_UCS4 c) noexcept:
    return c"a" <= c <= c"z" or c"A" <= c <= c"Z"


cdef inline bint _is_roman(Py_UCS4 c, bint is_lower) noexcept:
    """Whether a character is a Roman numeral of that case."""
    if is_lower:
        return c in (c"i", c"v", c"x", c"l", c"c", c"d", c"m")
    return c in (c"I", c"V", c"X", c"L", c"C", c"D", c"M")


cdef class Lines:
    """The lines of a reStructuredText, as `restructured_lines.Lines` says.

    Args:
        text: The text; its lines end in LF.
    """

    cdef object _text
    cdef int _kind
    cdef void* _data
    cdef Line* _lines
    # Levels of headings by the mark, and whether it is above the title too; 0 for none.
    cdef int[128][2] _levels
    cdef int _deepest
    cdef readonly Py_ssize_t last
    cdef public Py_ssize_t before_code

    def __cinit__(self):
        self.last = -1

    def __init__(self, text):
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not a {type(text).__name__}")
        self._text = text
        self._kind, self._data = PyUnicode_KIND(text), PyUnicode_DATA(text)
        self.before_code = -1
        self.last = str.count(text, "\n") + 1
        PyMem_Free(self._lines)
        self._lines = <Line*>PyMem_Malloc((self.last + 1) * sizeof(Line))
        if not self._lines:
            raise MemoryError
        cdef Py_ssize_t at, start = 0, end, length = str.__len__(text)
        for at in range(self.last):
            end = PyUnicode_FindChar(text, c"\n", start, length, 1) if at < self.last - 1 else length
            self._take_line(&self._lines[at], start, end)
            start = end + 1
        self._lines[self.last] = Line(start, start, start, 0)

    def __dealloc__(self):
        PyMem_Free(self._lines)

    cdef inline Py_UCS4 _read(self, Py_ssize_t position) noexcept:
        return PyUnicode_READ(self._kind, self._data, position)

    cdef void _take_line(self, Line* line, Py_ssize_t start, Py_ssize_t end) noexcept:
        cdef Py_ssize_t first = start, indent = 0
        cdef Py_UCS4 c
        while end > start and Py_UNICODE_ISSPACE(self._read(end - 1)):
            end -= 1
        while first < end:
            c = self._read(first)
            if not Py_UNICODE_ISSPACE(c):
                break
            indent += 8 - indent % 8 if c == c"\t" else 1
            first += 1
        line.start, line.first, line.end, line.indent = start, first, end, indent

    cdef int _check(self, Py_ssize_t at) except -1:
        if not 0 <= at <= self.last:
            raise IndexError(f"there is no line {at}")
        return 0

    def text(self, Py_ssize_t at):
        """What is on a line, without white space around it."""
        self._check(at)
        return PyUnicode_Substring(self._text, self._lines[at].first, self._lines[at].end)

    def indent(self, Py_ssize_t at):
        """How many columns are before that."""
        self._check(at)
        return self._lines[at].indent

    def span(self, Py_ssize_t at, Py_ssize_t after):
        """Where the lines [at, after) are in the text."""
        self._check(at)
        self._check(after - 1)
        return self._lines[at].start, self._lines[after - 1].end

    def beginning_with(self, str mark not None):
        """The lines that begin with a character."""
        cdef Py_UCS4 wanted = ord(mark)
        cdef Py_ssize_t at
        return [at for at in range(self.last) if not self._is_blank(at) and self._first(at) == wanted]

    cdef inline bint _is_blank(self, Py_ssize_t at) noexcept:
        return self._lines[at].first == self._lines[at].end

    cdef inline Py_UCS4 _first(self, Py_ssize_t at) noexcept:
        return self._read(self._lines[at].first)

    cdef inline bint _is_adornment(self, Py_ssize_t at) noexcept:
        if self._is_blank(at):
            return False
        cdef Py_ssize_t position = self._lines[at].first, end = self._lines[at].end
        cdef Py_UCS4 mark = self._read(position)
        if not _is_mark(mark):
            return False
        # From its end, where all but adornments most often differ.
        while end > position and self._read(end - 1) == mark:
            end -= 1
        return end == position

    def is_adornment(self, Py_ssize_t at):
        """Whether a line is one punctuation mark, again and again."""
        self._check(at)
        return self._is_adornment(at)

    cpdef Py_ssize_t group(self, Py_ssize_t at, Py_ssize_t indent) except -1:
        """The line after those after `at` without a blank line between that are indented by so much."""
        self._check(at)
        at += 1
        while at < self.last and self._lines[at].indent >= indent and not self._is_blank(at):
            at += 1
        return at

    cpdef Py_ssize_t indented(self, Py_ssize_t at, Py_ssize_t indent) except -1:
        """The line after those after `at` that are indented by more, whatever blank lines are between."""
        self._check(at)
        cdef Py_ssize_t last = at
        for at in range(at + 1, self.last):
            if self._lines[at].indent > indent:
                last = at
            elif not self._is_blank(at):
                break
        return last + 1

    def add_plain(self, Py_ssize_t at, list blocks not None):
        """Add the blocks from a line on, up to one that may begin what must be looked at; that line or the last."""
        self._check(at)
        cdef Py_ssize_t after
        while at < self.last:
            if self._is_blank(at):
                at += 1
            elif self._lines[at].indent > self.before_code >= 0:
                after = self.indented(at, self.before_code)
                blocks.append(_block("code", self._lines[at].start, self._lines[after - 1].end))
                self.before_code, at = -1, after
            elif self.before_code >= 0 and _is_mark(self._first(at)):
                break
            elif after := self._add_heading(at, blocks):
                at = after
            elif self._first(at) in (c".", c"+", c"=", c">") or self._is_adornment(at):
                break
            else:
                at = self._add_text(at, blocks)
        return at

    def add_heading(self, Py_ssize_t at, list blocks not None):
        """Add the heading that begins with a line; the line after it, 0 if there is none."""
        self._check(at)
        return self._add_heading(at, blocks)

    cdef Py_ssize_t _add_heading(self, Py_ssize_t at, list blocks) except -1:
        cdef Line* line = &self._lines[at]
        if line.indent:
            return 0
        cdef bint above = self._is_adornment(at)
        cdef Line* title = line + above
        cdef Py_ssize_t underline = at + 1 + above
        if title.first == title.end or not self._is_adornment(underline) or self._lines[underline].indent:
            return 0
        cdef Line* below = &self._lines[underline]
        cdef Py_ssize_t length = below.end - below.first
        cdef Py_UCS4 mark = self._read(below.first)
        if above and (mark != self._read(line.first) or length != line.end - line.first):
            return 0
        if not above and self._is_no_title(title):
            return 0
        text = PyUnicode_Substring(self._text, title.first, title.end)
        if length < _ENOUGH and length < width(text):
            return 0
        if self._is_marked(title):
            text = plain(text)
        if not self._levels[mark][above]:
            self._deepest += 1
            self._levels[mark][above] = self._deepest
        blocks.append(_block("heading", line.start, below.end, min(self._levels[mark][above], _DEEPEST), text))
        self.before_code = -1
        return underline + 1

    cdef bint _is_no_title(self, Line* line) noexcept:
        """Whether a line above an adornment is no title: an item of a list, code or something explicit."""
        cdef Py_ssize_t position = line.first, before
        cdef Py_UCS4 c = self._read(position)
        if c in (c"-", c"*", c"+", c"|", 0x2022, 0x2023, 0x2043):
            position += 1
        elif c in (c".", c"_"):
            position += 2
        elif c == c">":
            position += 3
        else:
            return False
        if position > line.end:
            return False
        for before in range(line.first, position):
            if self._read(before) != c:
                return False
        return position < line.end and self._is_blank_at(position) or c == c"." and position == line.end

    cdef bint _is_marked(self, Line* title) noexcept:
        """Whether a title may be other than its line is without markup."""
        cdef Py_ssize_t position
        for position in range(title.first, title.end):
            if self._read(position) in (c"`", c"*", c"|", c"\\"):
                return True
        return title.end - title.first > _LONGEST_TITLE

    def add_text(self, Py_ssize_t at, list blocks not None):
        """Add the paragraph or the item of a list that begins with a line; the line after it."""
        self._check(at)
        if self._is_blank(at):
            raise ValueError(f"line {at} is blank")
        return self._add_text(at, blocks)

    cdef Py_ssize_t _add_text(self, Py_ssize_t at, list blocks) except -1:
        cdef Py_ssize_t item = self._item(at), indent = self._lines[at].indent
        cdef Py_ssize_t after = self._item_end(at, indent) if item else self.group(at, indent)
        cdef Line last = self._lines[after - 1]
        if last.end - last.first > 1 and self._read(last.end - 1) == c":" == self._read(last.end - 2):
            self.before_code = last.indent + (item if after == at + 1 else 0)
        else:
            self.before_code = -1
        blocks.append(_block("list_item" if item else "paragraph", self._lines[at].start, last.end))
        return after

    cdef Py_ssize_t _item_end(self, Py_ssize_t at, Py_ssize_t indent) noexcept:
        """The line after an item of a list: like `group`, but for the next item of the same list."""
        at += 1
        while not self._is_blank(at) and self._lines[at].indent >= indent:
            if self._lines[at].indent == indent and self._item(at):
                break
            at += 1
        return at

    cdef Py_ssize_t _item(self, Py_ssize_t at) noexcept:
        """Columns before the text of a list item; 0 if it is none."""
        cdef Py_ssize_t first = self._lines[at].first, end = self._lines[at].end
        cdef Py_UCS4 c = self._read(first)
        if c == c":":
            return self._is_field(first, end)
        cdef Py_ssize_t position = first
        if c in (c"-", c"*", c"+", 0x2022, 0x2023, 0x2043):
            position += 1
        else:
            position = self._enumerator_end(first, end)
        if position >= end or not self._is_blank_at(position):
            return 0
        while self._is_blank_at(position):
            position += 1
        # What is on a line does not end with white space.
        return 0 if Py_UNICODE_ISSPACE(self._read(position)) else position - first

    cdef inline bint _is_blank_at(self, Py_ssize_t position) noexcept:
        cdef Py_UCS4 c = self._read(position)
        return c == c" " or c == c"\t"

    cdef Py_ssize_t _enumerator_end(self, Py_ssize_t position, Py_ssize_t end) noexcept:
        """Where an enumerator ends; the end of its line if there is none."""
        cdef Py_ssize_t start
        cdef Py_UCS4 c = self._read(position)
        cdef bint is_lower
        if c == c"(":
            position += 1
            if position == end:
                return end
            c = self._read(position)
        start = position
        position += 1
        if _is_digit(c):
            while position < end and _is_digit(self._read(position)):
                position += 1
        elif _is_letter(c):
            is_lower = c >= c"a"
            if _is_roman(c, is_lower):
                while position < end and _is_roman(self._read(position), is_lower):
                    position += 1
        elif c != c"#":
            return end
        if position == end or position > start + 9 or self._read(position) not in (c".", c")"):
            return end
        return position + 1

    cdef bint _is_field(self, Py_ssize_t position, Py_ssize_t end) noexcept:
        """Whether a line that begins with a colon names a field."""
        cdef Py_UCS4 c
        position += 1
        if position == end or self._read(position) == c" " or self._read(position) == c":":
            return False
        while position < end:
            c = self._read(position)
            position += 1
            if c == c"\\":
                position += 1
            elif c == c":":
                if position == end or self._is_blank_at(position):
                    return True
                c = self._read(position)
                if c == c"`" or Py_UNICODE_ISSPACE(c):
                    return False
        return False


@cython.freelist(8)
cdef class Tag:
    """A tag of HTML, as `html_tags.Tag`."""

    cdef readonly Py_ssize_t start, end
    cdef readonly str name
    cdef readonly bint is_end


cdef Tag _tag(Py_ssize_t start, Py_ssize_t end, str name, bint is_end):
    cdef Tag tag = Tag.__new__(Tag)
    tag.start, tag.end, tag.name, tag.is_end = start, end, name, is_end
    return tag


cdef uint64_t _packed(str name) except 0:
    """A name as a number of eight bits a character, which is how names are compared."""
    if not (0 < len(name) <= LONGEST_NAME and name.isascii() and name.isalnum() and name == name.lower()):
        raise ValueError(f"no name of a tag that could be looked for: {name!r}")
    cdef uint64_t packed = 0
    cdef Py_UCS4 c
    for c in name:
        packed = packed << 8 | <uint64_t>c
    return packed


cdef inline Py_UCS4 _folded(Py_UCS4 c) noexcept:
    """What a character of a name is in lower case; 0 for one that is in no name that is looked for."""
    if c"a" <= c <= c"z" or c"0" <= c <= c"9":
        return c
    if c"A" <= c <= c"Z":
        return <Py_UCS4>(<int>c + 32)
    return 0


cdef inline Py_UCS4 _folded_widely(Py_UCS4 c) noexcept:
    """The same for what ignores case in all of Unicode."""
    if c < 0x80:
        return _folded(c)
    if c == 0x130 or c == 0x131:
        return c"i"
    if c == 0x17F:
        return c"s"
    return c"k" if c == 0x212A else 0


cdef class _Names:
    """Names of tags that are looked for, and of those that hold what is never seen."""

    cdef uint64_t[MOST_NAMES] _packed
    cdef tuple _names
    cdef int _count, _unseen
    # Whether one begins with a letter.
    cdef bint[128] _is_first

    def __init__(self, names):
        self._names = (*_UNSEEN, *names)
        self._count, self._unseen = len(self._names), len(_UNSEEN)
        if self._count > MOST_NAMES:
            raise ValueError("too many names of tags")
        for index, name in enumerate(self._names):
            self._packed[index] = _packed(name)
            self._is_first[<Py_UCS4>name[0]] = True

    cdef inline int _index(self, uint64_t packed) noexcept:
        """Which of the names one is; -1 for none."""
        cdef int index
        for index in range(self._count):
            if self._packed[index] == packed:
                return index
        return -1


_names_of = lru_cache(_Names)
cdef _Names _NO_NAMES = _Names(())


cdef class _Tags:
    """Reads the tags of a text."""

    cdef object _text
    cdef int _kind
    cdef const void* _data
    cdef Py_ssize_t _at, _end
    cdef _Names _names

    cdef int _hold(self, text, Py_ssize_t start, Py_ssize_t end, _Names names) except -1:
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not a {type(text).__name__}")
        self._text = text
        self._kind = PyUnicode_KIND(text)
        self._data = PyUnicode_DATA(text)
        self._at, self._end = max(start, 0), min(end, <Py_ssize_t>str.__len__(text))
        self._names = names
        return 0

    def __iter__(self):
        return self

    cdef inline Py_UCS4 _read(self, Py_ssize_t at) noexcept:
        """The character at a place; 0, which means nothing in a tag, after the last."""
        return PyUnicode_READ(self._kind, self._data, at) if at < self._end else 0

    cdef inline Py_ssize_t _find(self, Py_UCS4 c, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Where a character in ASCII is next; -1 for nowhere."""
        if at >= end:
            return -1
        cdef const char* found
        if self._kind == 1:
            found = <const char*>memchr(<const char*>self._data + at, <int>c, end - at)
            return found - <const char*>self._data if found else -1
        return PyUnicode_FindChar(self._text, c, at, end, 1)

    cdef inline Py_ssize_t _after(self, Py_UCS4 c, Py_ssize_t at) noexcept:
        """The place after the next of a character; the end if there is none."""
        at = self._find(c, at, self._end)
        return at + 1 if at >= 0 else self._end

    cdef inline bint _is_name_end(self, Py_ssize_t at) noexcept:
        """Whether the character at a place parts a name from what follows; the end of the text does not."""
        cdef Py_UCS4 c = self._read(at)
        return c == c">" or c == c"/" or Py_UNICODE_ISSPACE(c)

    cdef inline uint64_t _packed_name(self, Py_ssize_t* at) noexcept:
        """The name at a place in ASCII, and the place after it; 0 for none that is looked for."""
        cdef uint64_t packed = 0
        cdef Py_ssize_t first = at[0]
        cdef Py_UCS4 c
        while at[0] - first < LONGEST_NAME:
            c = _folded(self._read(at[0]))
            if not c:
                break
            packed = packed << 8 | <uint64_t>c
            at[0] += 1
        return packed if at[0] == self._end or self._is_name_end(at[0]) else 0

    cdef Py_ssize_t _tag_end(self, Py_ssize_t at) noexcept:
        """As `html_tags._tag_end`."""
        cdef Py_UCS4 c
        while at < self._end:
            c = self._read(at)
            at += 1
            if c == c">":
                return at
            if c == c"=":
                c = self._read(at)
                while Py_UNICODE_ISSPACE(c):
                    at += 1
                    c = self._read(at)
                if c == c'"' or c == c"'":
                    at = self._after(c, at + 1)
        return self._end

    cdef inline bint _is_comment(self, Py_ssize_t at) noexcept:
        """Whether a comment begins with the mark at a place, after a `<`."""
        return self._read(at) == c"!" and self._read(at + 1) == c"-" and self._read(at + 2) == c"-"

    cdef Py_ssize_t _comment_end(self, Py_ssize_t start) except -1:
        """End of the comment that starts at `start`."""
        cdef Py_ssize_t found = PyUnicode_Find(self._text, "-->", start + 2, self._end, 1)
        return found + 3 if found >= 0 else self._end

    cdef Py_ssize_t _after_unseen(self, Py_ssize_t at, int unseen) noexcept:
        """As `html_tags._after_unseen`, for one of the names of what is not seen."""
        cdef uint64_t name = self._names._packed[unseen], packed
        cdef Py_ssize_t start, place, length = len(<str>self._names._names[unseen])
        while (start := self._find(c"<", at, self._end)) >= 0:
            at = start + 1
            if self._read(at) != c"/":
                continue
            packed = 0
            for place in range(at + 1, at + 1 + length):
                packed = packed << 8 | <uint64_t>_folded_widely(self._read(place))
            if packed == name and self._is_name_end(at + 1 + length):
                return start
        return self._end


cdef class _AllTags(_Tags):
    """As `html_tags.tags`."""

    # The tag at hand, which ends where the next is looked for; which of the names that are looked for it has.
    cdef Py_ssize_t _start, _name_start, _name_end
    cdef int _index
    cdef bint _is_end

    def __next__(self):
        if not self._advance():
            raise StopIteration
        return _tag(self._start, self._at, self._name(), self._is_end)

    cdef str _name(self):
        """Name of the tag at hand."""
        if self._index >= 0:
            return self._names._names[self._index]
        return PyUnicode_Substring(self._text, self._name_start, self._name_end).lower()

    cdef bint _advance(self) except -1:
        """Goes on to the next tag, if there is one."""
        cdef Py_ssize_t start, at
        cdef Py_UCS4 c
        while (start := self._find(c"<", self._at, self._end)) >= 0:
            at = start + 1
            c = self._read(at)
            if c == c"!" or c == c"?":
                if self._is_comment(at):
                    self._at = self._comment_end(start)
                else:
                    self._at = self._after(c">", at + 1)
                if self._names is _NO_NAMES:
                    self._start, self._index, self._is_end = start, -1, False
                    self._name_start = self._name_end = at
                    return True
                continue
            self._is_end = c == c"/"
            if self._is_end:
                at += 1
                c = self._read(at)
            if not _is_letter(c):
                self._at = at
                continue
            self._name_start = at
            self._index = self._names._index(self._packed_name(&at))
            while at < self._end and not self._is_name_end(at):
                at += 1
            self._name_end = at
            self._at = self._tag_end(at)
            if 0 <= self._index < self._names._unseen and not self._is_end:
                self._at = self._after_unseen(self._at, self._index)
            if self._index >= 0 or self._names is _NO_NAMES:
                self._start = start
                return True
        return False


@cython.freelist(32)
cdef class HtmlCell:
    """As `html_rows.HtmlCell`."""

    cdef readonly bint is_name
    cdef readonly Py_ssize_t start, end, columns, rows


@cython.freelist(32)
cdef class HtmlRow:
    """As `html_rows.HtmlRow`."""

    cdef readonly Py_ssize_t group, end
    cdef readonly bint in_head, is_spanned
    cdef readonly list cells

    @property
    def is_header(self):
        """Whether all of it are names."""
        cdef HtmlCell cell
        if not self.in_head:
            for cell in self.cells:
                if not cell.is_name:
                    return False
        return bool(self.cells)


cdef _Names _STRUCTURE = _Names(STRUCTURE)


cdef class _HtmlRows(_AllTags):
    """As `html_rows._Reader`."""

    cdef list rows, captions
    cdef HtmlRow _row
    cdef HtmlCell _cell
    cdef Py_ssize_t _nested, _group
    cdef bint _in_head

    cdef int _take(self) except -1:
        """The tag at hand."""
        cdef int name = self._index - _STRUCTURE._unseen
        if name == TABLES and self._row is not None and self._cell is not None and (self._nested or not self._is_end):
            self._nested += -1 if self._is_end else 1
        elif self._nested or name < 0:
            return 0
        elif name in (CELLS, NAMES):
            self._close_cell(self._at)
            if not self._is_end:
                if self._row is None:
                    self._row = self._open_row()
                self._open_cell(name == NAMES)
                self._row.cells.append(self._cell)
                self._take_spans()
        elif name == ROWS:
            self._close_cell(self._at)
            self._close_row(self._at if self._is_end else self._start)
            self._row = None if self._is_end else self._open_row()
        elif name != CAPTIONS:
            self._close_cell(self._at)
            self._close_row(self._start)
            self._group += 1
            self._in_head = name == HEADS and not self._is_end
        elif self._row is None:
            self._close_cell(self._at)
            if not self._is_end:
                self._open_cell(True)
                self.captions.append(self._cell)

    cdef HtmlRow _open_row(self):
        cdef HtmlRow row = HtmlRow.__new__(HtmlRow)
        row.group, row.in_head, row.cells = self._group, self._in_head, []
        return row

    cdef int _open_cell(self, bint is_name) except -1:
        cdef HtmlCell cell = HtmlCell.__new__(HtmlCell)
        cell.is_name, cell.start, cell.columns, cell.rows = is_name, self._at, 1, 1
        self._cell = cell

    cdef int _take_spans(self) except -1:
        """What the tag at hand says of columns and rows, if it can say anything."""
        cdef Py_ssize_t at
        for at in range(self._start, self._at - 2):
            if (
                Py_UNICODE_ISSPACE(self._read(at))
                and self._read(at + 1) in (c"c", c"C", c"r", c"R")
                and self._read(at + 2) in (c"o", c"O")
            ):
                spans = spanned(self._text, self._start, self._at)
                if spans:
                    self._row.is_spanned = True
                    self._cell.columns, self._cell.rows = spans
                return 0

    cdef int _close_cell(self, Py_ssize_t end) except -1:
        if self._cell is not None:
            self._cell.end = end
            self._cell = None

    cdef int _close_row(self, Py_ssize_t end) except -1:
        if self._row is not None:
            self._row.end = end
            self.rows.append(self._row)
            self._row = None


def html_rows(text, Py_ssize_t start, Py_ssize_t end):
    """As `html_rows.html_rows`."""
    cdef _HtmlRows read = _HtmlRows.__new__(_HtmlRows)
    read._hold(text, start, end, _STRUCTURE)
    read.rows, read.captions = [], []
    while read._advance():
        read._take()
    read._close_cell(end)
    read._close_row(end)
    return read.rows, read.captions


cdef class _TagsAtAGuess(_Tags):
    """As `html_tags.tags_at_a_guess`."""

    # The tag at hand, as in `_AllTags`; it is a comment if its name is empty.
    cdef Py_ssize_t _start
    cdef str _name
    cdef int _index
    cdef bint _is_end
    # The last `<` since the last tag; -1 for none.
    cdef Py_ssize_t _opened

    def __next__(self):
        if not self._advance():
            raise StopIteration
        return _tag(self._start, self._at, self._name, self._is_end)

    cdef bint _advance(self) except -1:
        """Goes on to the next tag, if there is one."""
        cdef Py_ssize_t start, at
        cdef Py_UCS4 c
        cdef bint is_end
        cdef int index
        cdef str name
        while (start := self._find(c"<", self._at, self._end)) >= 0:
            self._at = at = start + 1
            c = self._read(at)
            is_end = c == c"/"
            index = -1
            if is_end:
                at += 1
                c = self._read(at)
            name = None
            if c >= 0x80 or self._names._is_first[_folded(c)]:
                name = self._wanted(&at, &index)
            elif self._is_comment(start + 1):
                name = ""
            if name is None or self._opened >= 0 and self._find(c">", self._opened, start) < 0:
                self._opened = start
                continue
            if name:
                at = self._tag_end(at)
                if 0 <= index < self._names._unseen and not is_end:
                    at = self._after_unseen(at, index)
            else:
                at = self._comment_end(start)
            self._at = at
            self._opened = -1
            self._start, self._name, self._index, self._is_end = start, name, index, is_end
            return True
        return False

    cdef str _wanted(self, Py_ssize_t* at, int* index):
        """The name at a place, the place after it, and which of the names that are looked for it is."""
        cdef Py_ssize_t start = at[0]
        cdef uint64_t packed = 0
        cdef Py_UCS4 c
        cdef bint is_ascii = True
        while at[0] - start <= LONGEST_NAME:
            c = _folded_widely(self._read(at[0]))
            if not c:
                break
            is_ascii = is_ascii and self._read(at[0]) < 0x80
            packed = packed << 8 | <uint64_t>c
            at[0] += 1
        if at[0] - start > LONGEST_NAME or not self._is_name_end(at[0]):
            return None
        index[0] = self._names._index(packed)
        if index[0] < 0:
            return None
        if is_ascii:
            return self._names._names[index[0]]
        # What only seems to be one of the names if case is ignored.
        index[0] = -1
        return PyUnicode_Substring(self._text, start, at[0]).lower()


cdef _AllTags _all_tags(text, Py_ssize_t start, Py_ssize_t end, _Names names):
    cdef _AllTags found = _AllTags.__new__(_AllTags)
    found._hold(text, start, end, names)
    return found


def tags(text, Py_ssize_t start, Py_ssize_t end, tuple names=()):
    """As `html_tags.tags`."""
    return _all_tags(text, start, end, _names_of(names) if names else _NO_NAMES)


cdef _TagsAtAGuess _tags_at_a_guess(text, Py_ssize_t start, Py_ssize_t end, _Names names):
    cdef _TagsAtAGuess found = _TagsAtAGuess.__new__(_TagsAtAGuess)
    found._hold(text, start, end, names)
    found._opened = -1
    return found


def tags_at_a_guess(text, Py_ssize_t start, Py_ssize_t end, tuple names not None):
    """As `html_tags.tags_at_a_guess`."""
    return _tags_at_a_guess(text, start, end, _names_of(names))


cdef _Names _BLOCKS = _Names(BLOCKS)


def html_blocks(str text not None):
    """As `html_text.html_blocks`."""
    cdef _TagsAtAGuess tags = _tags_at_a_guess(text, 0, len(text), _BLOCKS)
    cdef list blocks = []
    title = ""
    # The element that is open and will be a block: its name, counted from the headings, where it starts, where its
    # first tag ends, and how often its name is open in it.
    cdef int element = -1, name
    cdef Py_ssize_t start = 0, inside = 0, depth = 0
    while tags._advance():
        name = tags._index - _BLOCKS._unseen
        if element in (TABLE, PRE):
            if name == element:
                depth += -1 if tags._is_end else 1
                if not depth:
                    blocks.append(_whole(tags, element, start, tags._at))
                    element = -1
        elif not tags._is_end:
            if name >= 0 and not (name == TITLE and title):
                element, start, inside, depth = name, tags._start, tags._at, 1
        elif element >= 0 and (name == element or element != TITLE and 0 <= name < HEADINGS):
            said = one_line(shown(text, inside, tags._start, LINES_OF_THEIR_OWN))[:_LONGEST_TITLE]
            if element == TITLE:
                title = said
            elif said:
                blocks.append(_block("heading", start, tags._at, element + 1, said))
            element = -1
    if element in (TABLE, PRE):
        blocks.append(_whole(tags, element, start, tags._end))
    return blocks, title


cdef _whole(_Tags tags, int element, Py_ssize_t start, Py_ssize_t end):
    """The block of a table or of preformatted text, without the white space at its end."""
    while end > start and Py_UNICODE_ISSPACE(tags._read(end - 1)):
        end -= 1
    return _block("table" if element == TABLE else "code", start, end)


def shown(text, Py_ssize_t start, Py_ssize_t end, frozenset apart=None):
    """As `html_tags.shown`."""
    cdef _AllTags tags = _all_tags(text, start, end, _NO_NAMES)
    cdef list pieces = []
    start, end = tags._at, tags._end
    while tags._advance():
        pieces.append(_unescaped(tags, start, tags._start))
        if apart and tags._name() in apart:
            pieces.append(" ")
        start = tags._at
    last = _unescaped(tags, start, end)
    return "".join([*pieces, last]) if pieces else last


cdef _unescaped(_Tags tags, Py_ssize_t start, Py_ssize_t end):
    """A part of a text with the characters that its entities stand for."""
    if start >= end:
        return ""
    part = PyUnicode_Substring(tags._text, start, end)
    return unescaped(part) if tags._find(c"&", start, end) >= 0 else part
