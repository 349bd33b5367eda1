"""Compiles the inner loops of parsing and chunking for a wheel or an editable install, where there is a C compiler.

Without one the package is the same but slower: each of those loops has a twin in Python.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from zlib import crc32

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODULES = ("transforms.chunkers.native", "transforms.parsers.native")


class CompiledLoops(BuildHookInterface[Any]):
    """Adds the compiled modules to what is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles before anything is packed.

        Args:
            version: `standard` or `editable`.
            build_data: What hatchling is told of the build.
        """
        self._folder = tempfile.mkdtemp()
        compiled = self._compile(Path(self._folder))
        if not compiled:
            self.app.display_warning(
                "No C compiler that works: the inner loops stay in Python, and are slower."
            )
        elif version == "editable":
            for place, file in compiled.items():
                shutil.copy(file, Path(self.root, place))
        else:
            build_data["force_include"].update({str(file): place for place, file in compiled.items()})
            build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leaves nothing behind."""
        shutil.rmtree(self._folder)

    def _compile(self, folder: Path) -> dict[str, Path]:
        """The compiled modules by their places in the tree; none if they cannot be compiled here."""
        from Cython.Build import cythonize
        from setuptools import Distribution, Extension
        from setuptools.command.build_ext import build_ext
        from setuptools.errors import CCompilerError, ExecError, PlatformError

        sources = {name: Path(self.root, *name.split(".")).with_suffix(".pyx") for name in MODULES}
        extensions = [
            Extension(
                name,
                [str(source)],
                define_macros=[("SOURCE_CRC", f"{crc32(source.read_bytes())}u")],
                extra_compile_args=["-O3", "-g0"] if os.name == "posix" else [],
            )
            for name, source in sources.items()
        ]
        command = build_ext(
            Distribution({"ext_modules": cythonize(extensions, build_dir=str(folder), quiet=True)})
        )
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.ensure_finalized()
        try:
            command.run()
        except (CCompilerError, ExecError, PlatformError):
            return {}
        return {command.get_ext_filename(name): Path(command.get_ext_fullpath(name)) for name in MODULES}
