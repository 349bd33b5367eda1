"""The compiled inner loops of parsing say what their twins in Python say."""

from __future__ import annotations

import os

import pytest

from transforms.parsers.compiled import native

REQUIRED = os.environ.get("CHUNKMILL_REQUIRE_NATIVE") == "1"
pytestmark = pytest.mark.skipif(
    native is None and not REQUIRED, reason="nothing is compiled here (pip install -e . does it)"
)


def test_it_is_compiled_where_it_must_be():
    assert native is not None
