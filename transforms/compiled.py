"""Inner loops as compiled code, where this installation has them.

Whatever is compiled has a twin in Python, which is used where it is missing and says what is right: the chunks are
the same. `CHUNKMILL_NATIVE=0` leaves all compiled code aside.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zlib import crc32


def compiled_loops(package: Path) -> ModuleType | None:
    """The compiled loops of a package of this one; None to do without.

    Args:
        package: Its folder, which holds their source.

    Raises:
        ImportError: If they were compiled from another source.
    """
    if os.environ.get("CHUNKMILL_NATIVE") == "0":
        return None
    name = f"transforms.{package.name}.native"
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
    source = package / "native.pyx"
    if module.source_crc != crc32(source.read_bytes()):
        raise ImportError(f"{source} is not what was compiled: pip install --no-deps -e . compiles it anew")
    return module
