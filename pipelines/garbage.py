"""How often a process of a run looks for rings of references."""

from __future__ import annotations

import atexit
import gc

_OBJECTS = 200_000


def collect_seldom() -> None:
    """Looks for rings only after so many new objects, and not at exit; called before Beam is imported.

    A document leaves no rings, and to look for some among all that Beam imports takes a tenth of a second each time.
    """
    gc.set_threshold(_OBJECTS)
    # At exit Python would look through everything three times more.
    atexit.register(gc.freeze)
