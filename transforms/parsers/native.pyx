# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=False, binding=False
"""The inner loops of parsing, compiled.

Each thing here has a twin in Python, named in its docstring, which says what is right; the tests hold the two
together.
"""

cdef extern from *:
    # What this file was when it was compiled; hatch_build.py tells.
    unsigned int SOURCE_CRC

source_crc = SOURCE_CRC
