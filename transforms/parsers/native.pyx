# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=False, binding=False
"""The inner loops of parsing, compiled.

Each thing here has a twin in Python, named in its docstring, which says what is right; the tests hold the two
together.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport (
    Py_UNICODE_ISSPACE,
    PyUnicode_DATA,
    PyUnicode_FindChar,
    PyUnicode_KIND,
    PyUnicode_READ,
    PyUnicode_Substring,
)

cdef extern from *:
    # What this file was when it was compiled; hatch_build.py tells.
    unsigned int SOURCE_CRC

source_crc = SOURCE_CRC


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
        block: Makes a block of its kind, its start and its end.
    """

    cdef object _text, _block
    cdef int _kind
    cdef void* _data
    cdef Line* _lines
    cdef readonly Py_ssize_t last
    cdef public Py_ssize_t before_code

    def __init__(self, text, block):
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not a {type(text).__name__}")
        self._text, self._block = text, block
        self._kind, self._data = PyUnicode_KIND(text), PyUnicode_DATA(text)
        self.before_code = -1
        self.last = text.count("\n") + 1
        PyMem_Free(self._lines)
        self._lines = <Line*>PyMem_Malloc((self.last + 1) * sizeof(Line))
        if not self._lines:
            raise MemoryError
        cdef Py_ssize_t at, start = 0, end, length = len(text)
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
                blocks.append(self._block("code", self._lines[at].start, self._lines[after - 1].end))
                self.before_code, at = -1, after
            elif (self.before_code >= 0 and _is_mark(self._first(at))) or self._may_be_more(at):
                break
            else:
                at = self._add_text(at, blocks)
        return at

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
        blocks.append(self._block("list_item" if item else "paragraph", self._lines[at].start, last.end))
        return after

    cdef inline bint _may_be_more(self, Py_ssize_t at) noexcept:
        if self._first(at) in (c".", c"+", c"=", c">") or self._is_adornment(at):
            return True
        return not self._lines[at].indent and self._is_adornment(at + 1)

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
