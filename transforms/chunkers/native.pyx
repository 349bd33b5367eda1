# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=False, binding=False
"""The inner loops of chunking, compiled.

Each thing here has a twin in Python, named in its docstring, which says what is right; the tests hold the two
together. What they decide by, such as the marks that end a sentence, is handed over by the twin's module.
"""

cimport cython
from cpython.array cimport array, clone
from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AsString
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.object cimport PyObject
from cpython.unicode cimport (
    Py_UNICODE_ISSPACE,
    PyUnicode_AsUTF8AndSize,
    PyUnicode_AsUTF8String,
    PyUnicode_DATA,
    PyUnicode_Find,
    PyUnicode_FindChar,
    PyUnicode_KIND,
    PyUnicode_READ,
    PyUnicode_Substring,
)

cdef array _INTEGERS = array("i")
cdef object _make_tuple = tuple.__new__

cdef extern from *:
    """
    #define CODE_POINTS 0x110000
    #define PLANE 0x10000
    """
    enum:
        CODE_POINTS
        PLANE
    # What this file was when it was compiled; hatch_build.py tells.
    unsigned int SOURCE_CRC

source_crc = SOURCE_CRC


cdef class _Text:
    """A text whose characters are read as they lie in memory."""

    cdef object _text
    cdef int _kind
    cdef void* _data
    cdef Py_ssize_t _length

    cdef int _hold(self, text) except -1:
        """Take a text; what derives from `str` will do."""
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, not a {type(text).__name__}")
        self._text = text
        self._kind = PyUnicode_KIND(text)
        self._data = PyUnicode_DATA(text)
        self._length = len(text)
        return 0

    @cython.final
    cdef inline Py_UCS4 _read(self, Py_ssize_t position) noexcept:
        return PyUnicode_READ(self._kind, self._data, position)

    @cython.final
    cdef Py_ssize_t _white_end(self, Py_ssize_t start, Py_ssize_t end) noexcept:
        """First position from `start` on, up to `end`, that is not white space."""
        if start >= end:
            return end
        while start < end and Py_UNICODE_ISSPACE(self._read(start)):
            start += 1
        return start


cdef inline bint _hangs_on_nothing(Py_UCS4 c) noexcept:
    """Whether a character never shares a grapheme cluster with another such one, whatever stands around them."""
    if c < 0x300:
        return True
    if c < 0x2010:
        return 0x370 <= c <= 0x482 or 0x48A <= c <= 0x52F
    if c <= 0x205F:
        return True
    if c < 0x4E00:
        return 0x3001 <= c <= 0x3029 or 0x3041 <= c <= 0x3096 or 0x30A1 <= c <= 0x30FF or 0x3400 <= c <= 0x4DBF
    return c <= 0x9FFF or 0xAC00 <= c <= 0xD7A3 or 0xFF01 <= c <= 0xFF60


cdef class Edges(_Text):
    """Where the slices of one text begin and end, as `edges.Edges` says."""

    cdef object _graphemes
    cdef object _make_graphemes
    # Of a character, in UTF-8.
    cdef int _most_bytes

    def __init__(self, text, graphemes):
        self._hold(text)
        self._make_graphemes = graphemes
        self._most_bytes = 1 if text.isascii() else 4

    cdef bint _is_plain(self, Py_ssize_t position) noexcept:
        if position <= 0 or position >= self._length:
            return True
        cdef Py_UCS4 left = self._read(position - 1), right = self._read(position)
        if left == c"\r" and right == c"\n":
            return False
        return _hangs_on_nothing(left) and _hangs_on_nothing(right)

    cdef _clusters(self):
        if self._graphemes is None:
            self._graphemes = self._make_graphemes(self._text)
        return self._graphemes

    cpdef Py_ssize_t before(self, Py_ssize_t position) except -1:
        """Last position up to `position` that divides no grapheme cluster."""
        return position if self._is_plain(position) else self._clusters().floor(position)

    cpdef Py_ssize_t after(self, Py_ssize_t position) except -1:
        """First position from `position` on that divides no grapheme cluster."""
        return position if self._is_plain(position) else self._clusters().ceil(position)

    cpdef Py_ssize_t begin(self, Py_ssize_t position, Py_ssize_t limit, bint keep_spaces=False) except -1:
        """Where a chunk from `position` on begins."""
        if position < limit and not Py_UNICODE_ISSPACE(self._read(position)):
            return position
        cdef Py_ssize_t seen = self._white_end(position, limit)
        if seen == limit:
            return limit
        cdef Py_ssize_t line = seen
        cdef Py_UCS4 c
        while line > position:
            c = self._read(line - 1)
            if c == c"\n" or c == c"\r":
                break
            line -= 1
        else:
            line = seen
            if keep_spaces or not position:
                line = position
            else:
                c = self._read(position - 1)
                if c == c"\n" or c == c"\r":
                    line = position
        line = self.before(line)
        return line if line > position else position

    cpdef Py_ssize_t finish(self, Py_ssize_t position, Py_ssize_t start) except -1:
        """Where a chunk up to `position` ends."""
        if position > start and not Py_UNICODE_ISSPACE(self._read(position - 1)):
            return position
        while position > start and Py_UNICODE_ISSPACE(self._read(position - 1)):
            position -= 1
        cdef Py_ssize_t end = self.after(position if position > start else start)
        return end if end > start else start


cdef enum Verdict:
    """As in strong_cuts.py."""
    NEVER = 0
    ALWAYS = 1
    AFTER_BLACK = 2


cdef class Counter:
    """What the rulers of all texts share: a tokenizer, and where its encoding can be cut.

    Args:
        begun: How many characters begin in each token.
        encode: Gives the ids of a text's tokens, 32 bits each.
        count: Counts the tokens of any text.
        known: Counts that are remembered, by their text.
        remembered_length: Length of the longest text whose count is.
        classes: Letters that stand for classes of characters, fewer than 16.
        white_classes: Those of white space.
        class_of: Gives the class of a character.
        verdicts: Gives for the classes of two neighbours whether a cut between them is strong; see `Verdict`.
        piece_tokens: How many tokens are looked at for a strong cut.
    """

    cdef const unsigned char[::1] _begun
    cdef object _encode, _count
    cdef dict _known
    cdef Py_ssize_t _remembered_length
    cdef str _classes
    cdef object _ask_class
    # By code point, 0 where it was not asked yet; the others count from 1.
    cdef unsigned char* _class_of
    cdef unsigned char[256] _verdicts
    cdef bint[16] _is_white
    cdef Py_ssize_t _piece_tokens

    def __cinit__(self):
        self._class_of = <unsigned char*>PyMem_Calloc(CODE_POINTS, 1)
        if not self._class_of:
            raise MemoryError

    def __init__(
        self,
        begun,
        encode,
        count,
        dict known not None,
        remembered_length,
        str classes not None,
        str white_classes not None,
        class_of,
        verdicts,
        piece_tokens,
    ):
        self._begun = begun
        self._encode = encode
        self._count = count
        self._known = known
        self._remembered_length = remembered_length
        self._classes = classes
        self._ask_class = class_of
        self._piece_tokens = piece_tokens
        for i, left in enumerate(classes, 1):
            self._is_white[i] = left in white_classes
            for j, right in enumerate(classes, 1):
                self._verdicts[i << 4 | j] = verdicts.get((left, right), NEVER)

    def __dealloc__(self):
        PyMem_Free(self._class_of)

    def ruler(self, text, list regions not None):
        """The ruler of a text."""
        cdef PrefixRuler made = PrefixRuler.__new__(PrefixRuler)
        made._measure(self, text, regions)
        return made

    cdef inline unsigned char _class(self, Py_UCS4 c) except 0:
        cdef unsigned char found = self._class_of[c]
        if not found:
            found = self._class_of[c] = 1 + self._classes.index(self._ask_class(chr(c)))
        return found

    cdef Py_ssize_t _count_slice(self, text, Py_ssize_t start, Py_ssize_t end) except -1:
        if start >= end:
            return 0
        cdef str part = PyUnicode_Substring(text, start, end)
        cdef PyObject* known
        if end - start <= self._remembered_length:
            known = PyDict_GetItem(self._known, part)
            if known:
                return <object>known
        return self._count(part)


cdef class PrefixRuler(_Text):
    """Token counts of slices of one text, as `rulers.PrefixRuler` says."""

    cdef Counter _counter
    cdef list _ids
    cdef list _regions
    cdef Py_ssize_t _start, _end, _total
    cdef array _array
    cdef int* _ends
    cdef Py_ssize_t _head, _first, _before, _tokens

    cdef int _measure(self, Counter counter, text, list regions) except -1:
        cdef Py_ssize_t start, end
        cdef bytes ids
        self._counter = counter
        self._hold(text)
        self._ids = []
        self._regions = regions
        self._start = self._end = 0
        if regions:
            self._start = regions[0][0]
            self._end = regions[len(regions) - 1][1]
        self._total = 0
        for start, end in regions:
            ids = counter._encode(PyUnicode_Substring(text, start, end))
            self._ids.append(ids)
            self._total += len(ids) // sizeof(unsigned int)
        self._head = self._first = self._start
        self._before = self._tokens = 0
        return 0

    @property
    def is_additive(self):
        """Whether a text has the tokens before a blank line and those after it, if it goes on without a space."""
        return True

    @property
    def ends(self):
        """End of each token of the whole text, in code points."""
        if self._array is None:
            self._sum_up()
        return self._array

    cdef int _sum_up(self) except -1:
        cdef array ends = clone(_INTEGERS, self._total, False)
        cdef const unsigned int* ids
        cdef const unsigned char[::1] begun = self._counter._begun
        cdef Py_ssize_t at = 0, i
        cdef int end
        for packed, region in zip(self._ids, self._regions):
            ids = <const unsigned int*>PyBytes_AsString(packed)
            end = region[0]
            for i in range(len(packed) // sizeof(unsigned int)):
                if ids[i] >= begun.shape[0]:
                    raise IndexError(f"no token has the id {ids[i]}")
                end += begun[ids[i]]
                ends.data.as_ints[at] = end
                at += 1
        self._array = ends
        self._ends = ends.data.as_ints
        return 0

    cdef inline Py_ssize_t _until(self, Py_ssize_t position, Py_ssize_t low) noexcept:
        """How many tokens end at or before a position; at least `low` do."""
        cdef Py_ssize_t high = self._total, middle
        cdef int* ends = self._ends
        while low < high:
            middle = (low + high) >> 1
            if ends[middle] <= position:
                low = middle + 1
            else:
                high = middle
        return low

    cdef inline bint _is_strong(self, Py_ssize_t place) except -1:
        """Whether the end of a token is a strong cut."""
        if place == self._end:
            return True
        cdef Counter counter = self._counter
        cdef unsigned char left = counter._class(self._read(place - 1))
        cdef unsigned char right = counter._class(self._read(place))
        cdef unsigned char verdict = counter._verdicts[left << 4 | right]
        if verdict == AFTER_BLACK:
            return place < 2 or not counter._is_white[counter._class(self._read(place - 2))]
        return verdict == ALWAYS

    cdef int _find_head(self, Py_ssize_t start) except -1:
        cdef Py_ssize_t index, place
        if self._array is None:
            self._sum_up()
        self._head = start
        if start == self._start:
            self._first, self._before, self._tokens = start, 0, 0
            return 0
        self._first, self._before, self._tokens = self._length + 1, 0, 0
        cdef Py_ssize_t at = self._until(start - 1, 0)
        for index in range(at, min(at + self._counter._piece_tokens, self._total)):
            place = self._ends[index]
            if self._is_strong(place):
                self._first = place
                self._before = self._until(place, index + 1)
                self._tokens = self._counter._count_slice(self._text, start, place)
                break
        return 0

    cpdef Py_ssize_t count(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """Tokens of the slice."""
        if end == self._end and start == self._start:
            return self._total
        if self._head != start or self._array is None:
            self._find_head(start)
        if self._first > end or end > self._end:
            return self._counter._count_slice(self._text, start, end)
        cdef Py_ssize_t after = self._until(end, self._before), place
        while after > self._before:
            place = self._ends[after - 1]
            if self._is_strong(place):
                return self._tokens + after - self._before + self._counter._count_slice(self._text, place, end)
            after -= 1
        return self._tokens + self._counter._count_slice(self._text, self._first, end)

    cpdef Py_ssize_t reach(self, Py_ssize_t start, Py_ssize_t budget) except -1:
        """About the furthest end of a slice from `start` within `budget` tokens, rather too far than too near."""
        if start == self._start and budget >= self._total:
            return self._end
        if self._head != start or self._array is None:
            self._find_head(start)
        cdef Py_ssize_t last, index, place
        if self._first > self._end:
            last = self._until(start, 0) + budget - 1
            return self._ends[last] if last < self._total else self._length
        last = self._before + max(budget - self._tokens, 1) - 1
        for index in range(last, min(last + self._counter._piece_tokens, self._total)):
            place = self._ends[index]
            if self._is_strong(place):
                return place
        return self._ends[last] if last < self._total else self._length

    cpdef Py_ssize_t back(self, Py_ssize_t end, Py_ssize_t budget) except -1:
        """About the earliest start of a slice up to `end` within `budget` tokens."""
        if self._array is None:
            self._sum_up()
        cdef Py_ssize_t first = self._until(end, 0) - budget - 1
        return self._ends[first] if first >= 0 else 0


cdef class Level(_Text):
    """A level, as `levels.Level` says; of its own it has no boundary."""

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        """Last boundary after `start` whose mark begins at or before `end`; -1 if there is none."""
        return -1

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        """First boundary after `start` and before `end`; -1 if there is none."""
        return -1

    def last(self, Py_ssize_t start, Py_ssize_t end):
        """Last boundary after `start` whose mark begins at or before `end`; None if there is none."""
        cdef Py_ssize_t boundary = self._last(start, end)
        return None if boundary < 0 else boundary

    def first(self, Py_ssize_t start, Py_ssize_t end):
        """First boundary after `start` and before `end`; None if there is none."""
        cdef Py_ssize_t boundary = self._first(start, end)
        return None if boundary < 0 else boundary


@cython.final
cdef class _Foreign(Level):
    """A level that is not compiled."""

    cdef object _find_last, _find_first

    def __init__(self, level):
        self._find_last, self._find_first = level.last, level.first

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        boundary = self._find_last(start, end)
        return -1 if boundary is None else boundary

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        boundary = self._find_first(start, end)
        return -1 if boundary is None else boundary


cdef Level _level(level):
    return level if isinstance(level, Level) else _Foreign(level)


@cython.final
cdef class SeparatorLevel(Level):
    """Boundaries after one separator, as `levels.SeparatorLevel` says."""

    cdef str _separator
    cdef Py_ssize_t _size

    def __init__(self, text, str separator not None):
        self._hold(text)
        self._separator = separator
        self._size = len(separator)

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = PyUnicode_Find(self._text, self._separator, start, end + self._size, -1)
        return -1 if at < 0 else at + self._size

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = PyUnicode_Find(
            self._text, self._separator, max(0, start - self._size + 1), max(0, end - 1), 1
        )
        return -1 if at < 0 else at + self._size


@cython.final
cdef class WordLevel(Level):
    """Boundaries after white space, as `levels.WordLevel` says."""

    def __init__(self, text):
        self._hold(text)

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = min(end + 1, self._length)
        while at > start:
            if Py_UNICODE_ISSPACE(self._read(at - 1)):
                return at
            at -= 1
        return -1

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at
        for at in range(max(0, start), min(end - 1, self._length)):
            if Py_UNICODE_ISSPACE(self._read(at)):
                return at + 1
        return -1


cdef Py_ssize_t _first_after(list places, Py_ssize_t position) except -1:
    """How many of ascending places are not after a position."""
    cdef Py_ssize_t low = 0, high = len(places), middle
    while low < high:
        middle = (low + high) >> 1
        if <Py_ssize_t>places[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low


@cython.final
cdef class PlaceLevel(Level):
    """Boundaries at given places, as `levels.PlaceLevel` says."""

    cdef list _ends, _starts

    def __init__(self, ends, starts):
        self._ends, self._starts = list(ends), list(starts)

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t place = _first_after(self._ends, end) - 1
        if place >= 0 and <Py_ssize_t>self._starts[place] > start:
            return self._starts[place]
        return -1

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t place = _first_after(self._starts, start)
        if place < len(self._starts) and <Py_ssize_t>self._starts[place] < end:
            return self._starts[place]
        return -1


@cython.final
cdef class AnyOf(Level):
    """Boundaries of several levels, as `levels.AnyOf` says."""

    cdef list _levels

    def __init__(self, levels):
        self._levels = [_level(level) for level in levels]

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t best = -1
        for level in self._levels:
            best = max(best, (<Level>level)._last(start, end))
        return best

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t best = -1, boundary
        for level in self._levels:
            boundary = (<Level>level)._first(start, end if best < 0 else best)
            if boundary >= 0:
                best = boundary
        return best


@cython.final
cdef class KeepingWhole(Level):
    """A level without the boundaries inside certain spans, as `levels.KeepingWhole` says."""

    cdef Level _of
    cdef list _starts, _ends

    def __init__(self, level, list starts not None, list ends not None):
        self._of = _level(level)
        self._starts, self._ends = starts, ends

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t boundary = self._of._last(start, end), span
        if boundary < 0:
            return -1
        span = _first_after(self._starts, boundary - 1) - 1
        if span < 0 or boundary >= <Py_ssize_t>self._ends[span]:
            return boundary
        return self._starts[span] if <Py_ssize_t>self._starts[span] > start else -1

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t boundary, span
        while True:
            boundary = self._of._first(start, end)
            if boundary < 0:
                return -1
            span = _first_after(self._starts, boundary - 1) - 1
            if span < 0 or boundary >= <Py_ssize_t>self._ends[span]:
                return boundary
            if <Py_ssize_t>self._starts[span] > start:
                return self._starts[span]
            start = <Py_ssize_t>self._ends[span] - 1


cdef enum Role:
    STOP = 1
    WANTS_SPACE = 2
    CLOSER = 4
    CLOSER_BEFORE_SPACE = 8


cdef class SentenceRules:
    """How sentences end, for all texts.

    Args:
        stops: Marks that may end a sentence.
        stops_before_space: Those of them that do so only before white space.
        closers: What may stand between a stop and the end of its sentence.
        closers_before_space: The same, for the stops before white space.
        omissions: Dots in brackets that end no sentence, three or five characters each.
        is_abbreviation: Tells of a text and a position whether the full stop there belongs to its word.
        mark_reach: How far before its boundary a stop may stand.
    """

    cdef unsigned char* _roles
    cdef Py_ssize_t _mark_reach
    cdef object _omissions
    cdef object _is_abbreviation

    def __cinit__(self):
        self._roles = <unsigned char*>PyMem_Calloc(PLANE, 1)
        if not self._roles:
            raise MemoryError

    def __init__(
        self, stops, stops_before_space, closers, closers_before_space, omissions, is_abbreviation, mark_reach
    ):
        for role, marks in (
            (STOP, stops),
            (WANTS_SPACE, stops_before_space),
            (CLOSER, closers),
            (CLOSER_BEFORE_SPACE, closers_before_space),
        ):
            for mark in marks:
                self._roles[<Py_UCS4>ord(mark)] |= <unsigned char>role
        self._omissions = omissions
        self._is_abbreviation = is_abbreviation
        self._mark_reach = mark_reach

    def __dealloc__(self):
        PyMem_Free(self._roles)

    def level(self, text):
        """The boundaries after the sentences of a text."""
        return SentenceLevel(self, text)


@cython.final
cdef class SentenceLevel(Level):
    """Boundaries after sentences, as `boundaries.MarkLevel` with the marks and rules of sentences says."""

    cdef SentenceRules _rules

    def __init__(self, SentenceRules rules not None, text):
        self._rules = rules
        self._hold(text)

    cdef inline unsigned char _role(self, Py_ssize_t position) noexcept:
        cdef Py_UCS4 c = self._read(position)
        return self._rules._roles[c] if c < PLANE else 0

    cdef Py_ssize_t _after(self, Py_ssize_t at) except -2:
        """The end of the sentence that the stop at `at` ends, -1 if it ends none."""
        cdef Py_ssize_t end = at + 1
        cdef Py_UCS4 stop = self._read(at), c
        cdef bint wants_space = self._role(at) & WANTS_SPACE
        cdef unsigned char closer = CLOSER_BEFORE_SPACE if wants_space else CLOSER
        if end < self._length and self._role(end) & STOP:
            return -1
        while end < self._length and self._role(end) & closer:
            end += 1
        if wants_space:
            end = self._after_references(end)
            while end < self._length and self._role(end) & CLOSER:
                end += 1
            if end + 1 < self._length and self._read(end + 1) == 0xBB:
                c = self._read(end)
                if c == c" " or c == 0xA0 or c == 0x202F:
                    if end + 2 == self._length or Py_UNICODE_ISSPACE(self._read(end + 2)):
                        end += 2
        if stop == c"." or stop == 0x2026:
            if self._text[max(at - 1, 0):at + 2] in self._rules._omissions:
                return -1
            if at >= 3 and self._text[at - 3:at + 2] in self._rules._omissions:
                return -1
        if end == self._length or not wants_space:
            return end
        c = self._read(end)
        if stop == 0x2026 and 0x2E80 <= c <= 0x9FFF:
            return end
        if not Py_UNICODE_ISSPACE(c):
            return -1
        if stop == c"." and end == at + 1 and self._rules._is_abbreviation(self._text, at):
            return -1
        return end + 1

    cdef Py_ssize_t _after_references(self, Py_ssize_t end) noexcept:
        """After references such as `[12]`, if any stand there."""
        cdef Py_ssize_t at
        while end < self._length and self._read(end) == c"[":
            at = end + 1
            while at < self._length and at < end + 4 and c"0" <= self._read(at) <= c"9":
                at += 1
            if at == end + 1 or at >= self._length or self._read(at) != c"]":
                break
            end = at + 1
        return end

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = min(end, self._length - 1), boundary
        while at >= start:
            if self._role(at) & STOP:
                boundary = self._after(at)
                if boundary > start:
                    return boundary
            at -= 1
        return -1

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = max(0, start - self._rules._mark_reach), boundary
        cdef Py_ssize_t stop = min(end, self._length)
        while at < stop:
            if self._role(at) & STOP:
                boundary = self._after(at)
                if boundary > start:
                    return boundary if boundary < end else -1
            at += 1
        return -1


@cython.final
cdef class BlankLineLevel(Level):
    """Boundaries after blank lines, as `boundaries.spans_of_blank_lines` says; found as they are needed."""

    cdef bint _has_returns
    # The blank lines found last: a walk through many of them asks of each.
    cdef Py_ssize_t _start, _end

    def __init__(self, text):
        self._hold(text)
        self._has_returns = PyUnicode_FindChar(text, c"\r", 0, self._length, 1) >= 0
        self._start = self._end = 0

    cdef Py_ssize_t _last(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at, first, low
        cdef int breaks
        if self._start <= end < self._end:
            return self._end if self._end > start else -1
        at = self._white_end(end, self._length)
        while True:
            at = self._break_before(at, start)
            if at < 0:
                return -1
            first, low, breaks = at, at + 1, 0
            while low > 0 and Py_UNICODE_ISSPACE(self._read(low - 1)):
                low -= 1
                if _is_line_break(self._read(low)):
                    first = low
                    breaks += not (self._read(low) == c"\r" and self._read(low + 1) == c"\n")
            if breaks > 1 and first <= end:
                self._start, self._end = first, at + 1
                return at + 1
            at = low

    cdef Py_ssize_t _first(self, Py_ssize_t start, Py_ssize_t end) except -2:
        cdef Py_ssize_t at = start, last
        cdef int breaks
        if 0 < at < self._length and Py_UNICODE_ISSPACE(self._read(at)):
            while at > 0 and Py_UNICODE_ISSPACE(self._read(at - 1)):
                at -= 1
        while True:
            at = self._break_from(max(0, at), end)
            if at < 0:
                return -1
            last, breaks = at, 0
            while at < self._length and Py_UNICODE_ISSPACE(self._read(at)):
                at += 1
                if _is_line_break(self._read(at - 1)):
                    last = at
                    breaks += not (self._read(at - 1) == c"\n" and at > 1 and self._read(at - 2) == c"\r")
            if breaks > 1 and last > start:
                return last if last < end else -1

    cdef Py_ssize_t _break_before(self, Py_ssize_t end, Py_ssize_t start) except -2:
        """Last line break in [start, end); -1 if there is none."""
        if not self._has_returns:
            return PyUnicode_FindChar(self._text, c"\n", max(0, start), end, -1) if start < end else -1
        while end > start and end > 0:
            end -= 1
            if _is_line_break(self._read(end)):
                return end
        return -1

    cdef Py_ssize_t _break_from(self, Py_ssize_t start, Py_ssize_t end) except -2:
        """First line break in [start, end); -1 if there is none."""
        if not self._has_returns:
            return PyUnicode_FindChar(self._text, c"\n", start, end, 1) if start < end else -1
        while start < min(end, self._length):
            if _is_line_break(self._read(start)):
                return start
            start += 1
        return -1


def spans_between_paragraphs(text, str bullets not None):
    """Blank lines and line breaks before items of lists, as `boundaries.spans_between_paragraphs` says."""
    cdef _Text held = _Text()
    held._hold(text)
    cdef Py_ssize_t length = held._length, start = 0, end, seen
    cdef bint has_returns = "\r" in text
    cdef list starts = [], ends = []
    cdef int breaks
    cdef Py_UCS4 c
    while True:
        if has_returns:
            while start < length and not _is_line_break(held._read(start)):
                start += 1
        else:
            start = PyUnicode_FindChar(text, c"\n", start, length, 1)
        if not 0 <= start < length:
            return starts, ends
        end = seen = start
        breaks = 0
        while seen < length:
            c = held._read(seen)
            if _is_line_break(c):
                seen += 1
                if c == c"\r" and seen < length and held._read(seen) == c"\n":
                    seen += 1
                end = seen
                breaks += 1
            elif Py_UNICODE_ISSPACE(c):
                seen += 1
            else:
                break
        if breaks > 1 or _is_item(held, end, bullets):
            starts.append(start)
            ends.append(end)
        start = end


cdef bint _is_item(_Text held, Py_ssize_t at, str bullets) except -1:
    """Whether a line is an item of a list: a bullet, or up to three digits and a stop or a bracket, and a blank."""
    cdef Py_ssize_t length = held._length, first
    while at < length and _is_blank(held._read(at)):
        at += 1
    if at < length and held._read(at) in bullets:
        at += 1
    else:
        at += at < length and held._read(at) == c"("
        first = at
        while at < length and at < first + 3 and c"0" <= held._read(at) <= c"9":
            at += 1
        if at == first or at >= length or (held._read(at) != c"." and held._read(at) != c")"):
            return False
        at += 1
    return at < length and _is_blank(held._read(at))


cdef inline bint _is_blank(Py_UCS4 c) noexcept:
    return c == c" " or c == c"\t"


cdef inline bint _is_line_break(Py_UCS4 c) noexcept:
    return c == c"\n" or c == c"\r"


cdef class Piece:
    """A chunk to be, as `pieces.Piece` says."""

    cdef public Py_ssize_t start, new, end, tokens
    cdef public bint over_budget
    cdef public object kind, heading_level, parent, fallback, spans, derived

    def __init__(
        self,
        Py_ssize_t start,
        Py_ssize_t new,
        Py_ssize_t end,
        Py_ssize_t tokens,
        bint over_budget=False,
        kind=None,
        heading_level=None,
        parent=None,
        fallback=None,
        spans=None,
        derived=None,
    ):
        self.start, self.new, self.end, self.tokens = start, new, end, tokens
        self.over_budget = over_budget
        self.kind, self.heading_level, self.parent = kind, heading_level, parent
        self.fallback, self.spans, self.derived = fallback, spans, derived

    def __repr__(self):
        return f"Piece({self.start}, {self.new}, {self.end}, {self.tokens})"


cdef Piece _piece(Py_ssize_t start, Py_ssize_t new, Py_ssize_t end, Py_ssize_t tokens):
    cdef Piece piece = Piece.__new__(Piece)
    piece.start, piece.new, piece.end, piece.tokens = start, new, end, tokens
    return piece


# More than any budget: what is never to stand in one chunk.
cdef Py_ssize_t _ENDLESS = 1 << 62


def all_of_it(start, size):
    """All of a budget, wherever the chunk starts."""
    return size


cdef class MeasuredText:
    """What every chunk of a document asks for, as `measured_text.MeasuredText` says."""

    cdef readonly object document, text, ruler
    cdef readonly Edges edges
    cdef readonly Py_ssize_t start, end
    cdef readonly list regions
    cdef public object title, room, limit, bound, removed
    cdef public dict notes, _prepared, _tables
    cdef readonly object blocks, block_kinds, block_starts, block_ends, _headings, _heading_starts
    cdef readonly bint has_tables
    cdef public list path_starts, paths
    # The ruler, where it is compiled and says how many tokens any slice has.
    cdef PrefixRuler _prefix

    def __init__(self, document, tokenizer, edges_of, ruler, regions_between_gaps):
        cdef Edges edges
        text = document.text
        self.document, self.text, self.title = document, text, document.title
        self.notes, self._prepared, self._tables = {}, {}, {}
        self.removed, self.path_starts, self.paths = [], [], []
        self.bound = self.blocks = self.block_kinds = self.block_starts = self.block_ends = ()
        self._headings = self._heading_starts = ()
        self.edges = edges = edges_of(text)
        self.start = edges.begin(0, edges._length)
        self.end = edges.finish(edges._length, self.start)
        self.regions = regions_between_gaps(text, self.start, self.end)
        self.ruler = ruler(text, tokenizer, self.regions)
        if len(self.regions) > 1:
            self.regions = [(edges.before(start), edges.before(end)) for start, end in self.regions]
        elif isinstance(self.ruler, PrefixRuler):
            self._prefix = self.ruler
        self.room = all_of_it

    def take_blocks(self, blocks):
        """Let the document have these blocks, before anything is cut."""
        cdef Edges edges = self.edges
        cdef list kept = [], kinds = [], starts = [], ends = [], headings = [], heading_starts = []
        cdef list paths = [], levels = [], titles = []
        cdef Py_ssize_t start, end
        self._tables = {}
        self.has_tables = False
        for block in blocks:
            kind, start, end = block.kind, block.start, block.end
            if edges.before(start) < start or edges.before(end) < end or (kind == "heading" and _is_unusual(block)):
                block = self._usable(block)
                if block is None:
                    continue
                kind, start, end = block.kind, block.start, block.end
            kept.append(block)
            kinds.append(kind)
            starts.append(start)
            ends.append(end)
            if kind == "heading":
                level = block.level
                while levels and levels[len(levels) - 1] >= level:
                    levels.pop()
                    titles.pop()
                levels.append(level)
                titles.append(block.title)
                headings.append(block)
                heading_starts.append(start)
                paths.append(tuple(titles))
            elif kind == "table":
                self.has_tables = True
        self.blocks, self.block_kinds, self.block_starts, self.block_ends = kept, kinds, starts, ends
        self._headings, self._heading_starts = headings, heading_starts
        self.path_starts, self.paths = heading_starts[:], paths

    def kind_of(self, Py_ssize_t start, Py_ssize_t end):
        """Kind of the block that holds all of a slice, if one does."""
        if not self.blocks:
            return None
        cdef Py_ssize_t place = _first_after(self.block_starts, start) - 1
        return self.block_kinds[place] if place >= 0 and end <= <Py_ssize_t>self.block_ends[place] else None

    def path_at(self, Py_ssize_t position):
        """The path in force at a position."""
        cdef Py_ssize_t place = _first_after(self.path_starts, position) - 1
        return self.paths[place] if place >= 0 else ()

    def edge_before(self, Py_ssize_t position):
        """Last position up to `position` that divides no grapheme cluster."""
        return self.edges.before(position)

    def edge_after(self, Py_ssize_t position):
        """First position from `position` on that divides no grapheme cluster."""
        return self.edges.after(position)

    def begin(self, Py_ssize_t position, Py_ssize_t limit, bint keep_spaces=False):
        """Where a chunk from `position` on begins."""
        return self.edges.begin(position, limit, keep_spaces)

    def finish(self, Py_ssize_t position, Py_ssize_t start):
        """Where a chunk up to `position` ends."""
        return self.edges.finish(position, start)

    def trim(self, Py_ssize_t start, Py_ssize_t end):
        """A slice with clean edges; empty if it is blank."""
        start = self.edges.begin(start, end)
        return start, self.edges.finish(end, start)

    cpdef Py_ssize_t count(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """Tokens of a slice, from start to end; more than any budget if it spans a hard gap."""
        if self._prefix is not None:
            return self._prefix.count(start, end)
        if len(self.regions) > 1:
            for low, high in self.regions:
                if low <= start and end <= high:
                    break
            else:
                return _ENDLESS
        return self.ruler.count(start, end)

    cpdef Py_ssize_t reach(self, Py_ssize_t start, Py_ssize_t budget) except -1:
        """About the furthest end of a chunk from `start` within `budget` tokens, rather too far than too near."""
        cdef Py_ssize_t furthest
        if self._prefix is None:
            furthest = self.ruler.reach(start, budget)
        else:
            furthest = self._prefix.reach(start, budget)
        return furthest if self.limit is None else min(furthest, self.limit(start))

    cdef Py_ssize_t _back(self, Py_ssize_t end, Py_ssize_t budget) except -1:
        """About the earliest start of a slice up to `end` within `budget` tokens."""
        return self.ruler.back(end, budget) if self._prefix is None else self._prefix.back(end, budget)

    cdef bint _has_at_most(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t tokens) noexcept:
        """Whether a slice is so short that nobody need count its tokens, of which none has less than a byte."""
        return self._prefix is not None and (end - start) * self.edges._most_bytes <= tokens

    cdef Py_ssize_t _room(self, Py_ssize_t start, Py_ssize_t size) except? -1:
        """What of a budget is left for a chunk that starts somewhere."""
        return size if self.room is all_of_it else self.room(start, size)


cdef bint _is_unusual(heading) except -1:
    """Whether a heading lacks a title, or has a level that there is not."""
    cdef object level = heading.level, title = heading.title
    return not title or title.isspace() or level is None or not 1 <= level <= 6


def whole(MeasuredText measured not None, Py_ssize_t start, Py_ssize_t end, Py_ssize_t size):
    """All of [start, end) as one chunk, if that fits, as `packing.whole` says."""
    cdef Edges edges = measured.edges
    cdef Py_ssize_t tokens
    start = edges.begin(start, end)
    end = edges.finish(end, start)
    size = measured._room(start, size)
    if end > measured.reach(start, size):
        return None
    tokens = measured.count(start, end)
    return _piece(start, start, end, tokens) if tokens <= size else None


cdef class Filler:
    """Fills chunk after chunk of one document, as `filling.Filler` says."""

    cdef readonly MeasuredText _measured
    cdef public list barriers, whole_starts, whole_ends
    cdef Edges _edges
    cdef readonly Py_ssize_t _size
    cdef Py_ssize_t _overlap, _tries
    cdef tuple _ladder, _overlap_levels
    cdef object _by_kind, _overlap_of
    cdef dict _levels

    def __init__(
        self,
        MeasuredText measured not None,
        Py_ssize_t size,
        Py_ssize_t overlap,
        tuple ladder not None,
        by_kind,
        tuple overlap_levels not None,
        overlap_of,
        kept_whole,
        not_shared,
        Py_ssize_t tries,
    ):
        self._measured = measured
        self._edges = measured.edges
        self._size, self._overlap, self._tries = size, overlap, tries
        self._ladder = ladder
        self._by_kind = by_kind
        self._overlap_levels = overlap_levels
        self._overlap_of = overlap_of
        self._levels = {}
        self.barriers, self.whole_starts, self.whole_ends = [], [], []
        if measured.blocks:
            self._mark_blocks(kept_whole, not_shared)

    cdef int _mark_blocks(self, kept_whole, not_shared) except -1:
        """Find the barriers, and what is kept whole."""
        cdef MeasuredText measured = self._measured
        cdef list kinds = measured.block_kinds, starts = measured.block_starts, ends = measured.block_ends
        cdef Py_ssize_t place
        for place in range(len(kinds)):
            kind = kinds[place]
            if kind in not_shared:
                self.barriers.append(ends[place])
            if kind not in kept_whole:
                continue
            if self._fits(starts[place], ends[place]):
                self.whole_starts.append(starts[place])
                self.whole_ends.append(ends[place])
                continue
            for start, end in measured.rows_of(measured.blocks[place]):
                if self._fits(start, end):
                    self.whole_starts.append(start)
                    self.whole_ends.append(end)
        return 0

    cpdef bint _fits(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """Whether a slice is within the budget."""
        cdef MeasuredText measured = self._measured
        cdef Py_ssize_t size = measured._room(start, self._size)
        return measured._has_at_most(start, end, size) or measured.count(start, end) <= size

    def level(self, name):
        """A level by its name."""
        return self._level(name)

    cdef Level _level(self, name):
        found = self._levels.get(name)
        if found is None:
            found = self._levels[name] = _level(self._make_level(name))
        return <Level>found

    def pack(self, Py_ssize_t start, Py_ssize_t end):
        """Chunks of [start, end), in order."""
        cdef list pieces = []
        for low, high in self._measured.regions:
            if low < end and start < high:
                self._pack_region(max(low, start), min(high, end), pieces)
        return pieces

    cdef int _pack_region(self, Py_ssize_t start, Py_ssize_t end, list pieces) except -1:
        cdef MeasuredText measured = self._measured
        cdef Edges edges = self._edges
        cdef Piece previous = None, piece
        cdef Level level
        cdef tuple ladder
        cdef Py_ssize_t new = edges.begin(start, end), stop, last, depth, lead, black, size, reach, boundary
        cdef list stack = [(end, edges.finish(end, new), self._ladder, 0)]
        while stack:
            stop, last, ladder, depth = stack[len(stack) - 1]
            if new >= last:
                stack.pop()
                continue
            lead = self.lead(previous, new) if previous is not None and self._overlap else new
            black = edges._white_end(new, stop)
            size = measured._room(lead, self._size)
            reach = measured.reach(lead, size)
            piece = self._whole(lead, new, last, size) if last <= reach else None
            while piece is None:
                if depth == len(ladder):
                    piece = self._graphemes(lead, new, black, stop, size)
                    break
                level = self._level(ladder[depth])
                piece = self._longest(level, lead, new, black, stop, reach, size)
                if piece is not None:
                    break
                boundary = level._first(black, stop)
                if boundary >= 0:
                    boundary = edges.after(boundary)
                if boundary < 0 or boundary >= stop:
                    stack.pop()
                else:
                    stop, last = boundary, edges.finish(boundary, new)
                if lead < new:
                    size = measured._room(new, self._size)
                    piece = self._whole(new, new, last, size) if last <= measured.reach(new, size) else None
                    if piece is not None and previous is not None:
                        self._lengthen(piece, lead, previous.end, size)
                    size = measured._room(lead, self._size)
                kind = measured.kind_of(new, last)
                finer = self._by_kind.get(kind) if kind else None
                if finer is None or finer is ladder:
                    depth += 1
                else:
                    ladder, depth = finer, 0
                stack.append((stop, last, ladder, depth))
            pieces.append(piece)
            previous = piece
            new = edges.begin(piece.end, end)
        return 0

    cdef Piece _whole(self, Py_ssize_t start, Py_ssize_t new, Py_ssize_t end, Py_ssize_t size):
        """All that is left of the piece at hand, up to its trimmed end, if it fits."""
        cdef Py_ssize_t tokens = self._measured.count(start, end)
        return _piece(start, new, end, tokens) if tokens <= size else None

    cdef Piece _longest(
        self,
        Level level,
        Py_ssize_t start,
        Py_ssize_t new,
        Py_ssize_t black,
        Py_ssize_t stop,
        Py_ssize_t reach,
        Py_ssize_t size,
    ):
        """The most pieces of a level that fit together, if any does."""
        cdef MeasuredText measured = self._measured
        cdef Py_ssize_t furthest = min(reach, stop - 1), before = stop, boundary, end = 0, tokens
        while furthest > black:
            boundary = level._last(black, furthest)
            if boundary < 0:
                return None
            boundary = self._edges.after(boundary)
            if boundary < before:
                end = self._edges.finish(boundary, new)
                if end <= reach:
                    tokens = measured.count(start, end)
                    if tokens <= size:
                        return _piece(start, new, end, tokens)
                before = boundary
                furthest = min(furthest, end)
            furthest -= 1
        return None

    cdef Piece _graphemes(
        self, Py_ssize_t start, Py_ssize_t new, Py_ssize_t black, Py_ssize_t stop, Py_ssize_t size
    ):
        """The most grapheme clusters that fit; one that does not fit alone is a chunk over budget."""
        cdef MeasuredText measured = self._measured
        cdef Edges edges = self._edges
        cdef Py_ssize_t bare = max(new, edges.before(black)), lead, edge, end, tokens
        cdef Piece piece
        for lead in dict.fromkeys((start, new, bare)):
            edge = edges.before(min(measured.reach(lead, size), stop))
            while edge > black:
                end = edges.finish(edge, new)
                tokens = measured.count(lead, end)
                if tokens <= size:
                    return _piece(lead, max(lead, new), end, tokens)
                edge = edges.before(edge - max(1, (end - lead) * (tokens - size) // tokens))
        end = edges.after(black + 1)
        tokens = measured.count(bare, end)
        piece = _piece(bare, bare, end, tokens)
        piece.over_budget = tokens > self._size
        return piece

    cpdef Py_ssize_t lead(self, Piece previous, Py_ssize_t new) except -1:
        """Where a chunk after `previous` starts: the overlap that the settings allow, on the best boundary."""
        cdef Py_ssize_t end = previous.end, low = max(previous.new, self._barrier(end)), lead
        if low >= end or (self._overlap_of and self._level(self._overlap_of)._first(end - 1, new + 1) < 0):
            return new
        low = max(low, self._measured._back(end, self._overlap), previous.start + 1)
        lead = self._first_that_fits(low, end, end, self._overlap)
        return new if lead < 0 else lead

    cdef int _lengthen(self, Piece piece, Py_ssize_t lead, Py_ssize_t shared_end, Py_ssize_t size) except -1:
        """Let a piece have as much of the overlap from `lead` to `shared_end` as the budget allows."""
        cdef MeasuredText measured = self._measured
        cdef Py_ssize_t low = max(lead + 1, measured._back(piece.end, size))
        cdef Py_ssize_t start = self._first_that_fits(low, piece.new, piece.end, size)
        if start >= 0 and measured.count(start, shared_end) <= self._overlap:
            piece.start, piece.tokens = start, measured.count(start, piece.end)
        return 0

    cdef Py_ssize_t _first_that_fits(
        self, Py_ssize_t low, Py_ssize_t high, Py_ssize_t end, Py_ssize_t budget
    ) except -2:
        """First good place in [low, high) that is within the budget of `end`; -1 if there is none."""
        cdef MeasuredText measured = self._measured
        cdef Edges edges = self._edges
        cdef Level level
        cdef Py_ssize_t place, boundary, start
        for name in self._overlap_levels:
            level, place = self._level(name), low - 1
            for _ in range(self._tries):
                boundary = level._first(place, high)
                if boundary < 0:
                    break
                start = edges.after(boundary)
                if start < high and Py_UNICODE_ISSPACE(edges._read(start)):
                    start = edges.begin(start, high)
                if start < high and measured.count(start, end) <= budget:
                    return start
                place = boundary
        start = edges.after(low)
        if self._overlap_of or self._is_inside_whole(start):
            return -1
        for _ in range(self._tries):
            if start < high and not Py_UNICODE_ISSPACE(edges._read(start)) and measured.count(start, end) <= budget:
                return start
            start = edges.after(start + 1)
        return -1

    cdef bint _is_inside_whole(self, Py_ssize_t position) except -1:
        """Whether what stays whole would be cut at a position."""
        cdef Py_ssize_t place = _first_after(self.whole_starts, position - 1) - 1
        return place >= 0 and position < <Py_ssize_t>self.whole_ends[place]

    cdef Py_ssize_t _barrier(self, Py_ssize_t end) except -1:
        """End of the last block before `end` that no overlap reaches into."""
        cdef Py_ssize_t place = _first_after(self.barriers, end) - 1
        return self.barriers[place] if place >= 0 else 0


@cython.final
cdef class _Places(_Text):
    """Tells how many bytes and line breaks the slices of a text have."""

    cdef bint _one_byte, _has_returns

    def __init__(self, text):
        self._hold(text)
        self._one_byte = text.isascii()
        self._has_returns = "\r" in text

    cdef Py_ssize_t _bytes(self, Py_ssize_t start, Py_ssize_t end) noexcept:
        cdef Py_ssize_t size = end - start
        cdef Py_UCS4 c
        if not self._one_byte:
            for at in range(start, end):
                c = self._read(at)
                size += (c >= 0x80) + (c >= 0x800) + (c >= 0x10000)
        return size

    cdef Py_ssize_t _line_breaks(self, Py_ssize_t start, Py_ssize_t end) noexcept:
        cdef Py_ssize_t breaks = 0, at
        cdef const unsigned char* narrow = <const unsigned char*>self._data
        cdef const unsigned short* wide = <const unsigned short*>self._data
        cdef Py_UCS4 c
        if self._has_returns:
            for at in range(start, end):
                c = self._read(at)
                breaks += c == c"\n" or c == c"\r"
                if c == c"\n" and at > start and self._read(at - 1) == c"\r":
                    breaks -= 1
        elif self._kind == 1:
            for at in range(start, end):
                breaks += narrow[at] == c"\n"
        elif self._kind == 2:
            for at in range(start, end):
                breaks += wide[at] == c"\n"
        else:
            for at in range(start, end):
                breaks += self._read(at) == c"\n"
        return breaks


@cython.final
cdef class _Ids:
    """Gives the ids of the chunks of one document, as `fingerprint.chunk_ids` says.

    Args:
        nothing: A SHA-256 of nothing.
        start: What the ids of all chunks of the document begin with.
    """

    cdef object _nothing, _begun
    cdef dict _seen
    # Bytes of the text whose id was given last.
    cdef Py_ssize_t _size

    def __init__(self, nothing, bytes start not None):
        self._nothing = nothing
        self._begun = nothing.copy()
        self._begun.update(start)
        self._seen = {}

    cdef str _next(self, str text):
        digest = self._nothing.copy()
        if text.isascii():
            digest.update(PyMemoryView_FromMemory(<char*>PyUnicode_AsUTF8AndSize(text, &self._size), self._size, PyBUF_READ))
        else:
            # The text would keep what it is asked for above, and that of all chunks takes as much memory again.
            data = PyUnicode_AsUTF8String(text)
            self._size = len(data)
            digest.update(data)
        cdef str found = digest.hexdigest()
        before = self._seen.get(found)
        cdef Py_ssize_t ordinal = 0 if before is None else before + 1
        self._seen[found] = ordinal
        whole = self._begun.copy()
        whole.update(f"{found}\n{ordinal}".encode())
        return whole.hexdigest()[:32]


@cython.final
cdef class _Blocks:
    """What the blocks of a document say of its slices, as `finishing.facts_of` says.

    Args:
        measured: The document.
        plain: Facts of a slice that touches no block.
        special: Kinds of blocks that make a chunk special.
        facts_of: Tells the facts of slices with locations or images.
    """

    cdef object _measured, _special, _facts_of
    cdef tuple _plain
    cdef list _blocks, _kinds, _starts, _ends

    def __init__(self, measured, tuple plain, special, facts_of):
        self._measured, self._special, self._facts_of = measured, special, facts_of
        self._plain = plain
        self._blocks = measured.blocks or []
        self._kinds, self._starts, self._ends = [], [], []
        if self._blocks:
            self._kinds, self._starts, self._ends = measured.block_kinds, measured.block_starts, measured.block_ends

    cdef bint _is_in_table(self, Py_ssize_t position) except -1:
        """Whether a position is inside a table, and not where it starts."""
        cdef Py_ssize_t place = _first_after(self._starts, position - 1) - 1
        return place >= 0 and position < <Py_ssize_t>self._ends[place] and self._kinds[place] == "table"

    cdef tuple _facts(self, Py_ssize_t start, Py_ssize_t end):
        cdef Py_ssize_t first = _first_after(self._ends, start), last = _first_after(self._starts, end - 1), place
        cdef str kind
        cdef bint is_special
        if first >= last:
            return self._plain
        for place in range(first, last):
            block = self._blocks[place]
            if block.locations or block.images:
                return self._facts_of(self._measured, start, end)
        kind = _kind(self._kinds[first])
        is_special = kind in self._special
        for place in range(first + 1, last):
            is_special = is_special and kind == _kind(self._kinds[place])
        if not is_special:
            return self._plain
        level = self._blocks[first].level if kind == "heading" and first + 1 == last else None
        return kind, level, (), ()


cdef inline str _kind(str kind):
    """The kind of a chunk that holds nothing but a block of some kind."""
    return "table" if kind == "table_row" else kind


def chunks_of(chunk_type, shared, facts_of, tuple plain, special, nothing, measured, pieces, chunker, context):
    """The chunks of a document, and what lies in none of them and is not blank, as `finishing.chunks_of` says.

    Args:
        chunk_type: What a chunk is, a tuple.
        shared: How many characters a piece shares with the one before, for those of many spans.
        facts_of: What the blocks say of a slice, for those with locations or images.
        plain: Facts of a slice that touches no block.
        special: Kinds of blocks that make a chunk special.
        nothing: A SHA-256 of nothing.
    """
    document = measured.document
    cdef object text = document.text, document_id = document.document_id
    cdef object acl_labels = document.acl_labels, tenant_id = document.tenant_id
    cdef str strategy = chunker.name, content
    cdef Py_ssize_t budget = chunker.chunk_size
    cdef _Places held = _Places(text)
    cdef _Ids ids = _Ids(nothing, f"{document_id}\n{chunker.hash}\n".encode())
    cdef _Blocks blocks = _Blocks(measured, plain, special, facts_of)
    cdef list path_starts = measured.path_starts, paths = measured.paths
    cdef bint has_context = context.is_told, is_of_place = context.is_of_place
    cdef Py_ssize_t index = 0, at = 0, byte = 0, line = 1, reached = 0, overlap, after, last, start, end
    # The path in force where a chunk starts, and the one that `told` is the context of.
    cdef Py_ssize_t path, place, told_of = -2
    cdef list chunks = [], gaps = []
    cdef Piece piece, before = None
    cdef tuple facts
    told = None
    for piece in pieces:
        start, end = piece.start, piece.end
        if not 0 <= start <= end <= held._length:
            raise ValueError(f"a piece from {start} to {end} is not in the text")
        if start >= at:
            byte += held._bytes(at, start)
            line += held._line_breaks(at, start)
        else:
            byte -= held._bytes(start, at)
            line -= held._line_breaks(start, at)
        at, last = end, line + held._line_breaks(start, end)
        if piece.derived is None and not piece.spans:
            content = PyUnicode_Substring(text, start, end)
            chunk_id = ids._next(content)
            after = byte + ids._size
        else:
            content = piece.derived or "".join([text[low:high] for low, high in piece.spans or ()])
            chunk_id = ids._next(content)
            after = byte + held._bytes(start, end)
        if start > reached and held._white_end(reached, start) < start:
            gaps.append((reached, start))
        if start >= reached:
            overlap = 0
        elif before is None or piece.spans or before.spans:
            overlap = shared(piece, before, reached)
        else:
            overlap = reached - start if end > reached else 0
        facts = blocks._facts(start, end)
        path = _first_after(path_starts, start) - 1
        if has_context:
            # Inside a table it depends on where its header ends, too.
            place = -2 if blocks._is_in_table(start) else path
            if place != told_of or place == -2 or not is_of_place:
                told = context.of(start, content, piece.tokens)
                told_of = place
        chunks.append(
            _make_tuple(
                chunk_type,
                (
                    chunk_id,
                    document_id,
                    index,
                    content,
                    piece.tokens,
                    piece.spans or ((start, end),),
                    (byte, after),
                    overlap,
                    (line, last),
                    piece.kind or facts[0],
                    f"{strategy}:{piece.fallback}" if piece.fallback else strategy,
                    piece.heading_level or facts[1],
                    () if path < 0 else paths[path],
                    None if piece.parent is None else chunks[piece.parent][0],
                    told,
                    facts[2],
                    facts[3],
                    piece.derived is not None,
                    piece.over_budget and piece.tokens > budget,
                    acl_labels,
                    tenant_id,
                ),
            )
        )
        index += 1
        byte, line = after, last
        if end > reached:
            reached, before = end, piece
    if held._white_end(reached, held._length) < held._length:
        gaps.append((reached, held._length))
    return chunks, gaps
