"""Who may import whom: cutting a document needs no Beam, and nothing below knows what is above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

import transforms

ROOT = Path(transforms.__file__).parent
# Each may import what stands in a line below its own; the last line is every leaf.
LAYERS = (
    ("chunkers",),
    ("parsers", "tokenizers"),
    ("records", "storage"),
    ("fingerprint",),
    ("provenance", "errors", "path_patterns", "compiled"),
)
CORE = [name for layer in LAYERS for name in layer]
# The flow: thin stages over pure functions.
WITH_BEAM = {"read", "parse", "chunk", "write", "stage", "waves"}


def module_of(path):
    """`transforms/chunkers/heading.py` -> `chunkers`."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = sorted(ROOT.rglob("*.py"))


def test_the_core_imports_only_what_is_below_it():
    for path in FILES:
        module = module_of(path)
        if module not in CORE:
            continue
        layer = next(place for place, names in enumerate(LAYERS) if module in names)
        below = {module, *(name for names in LAYERS[layer + 1 :] for name in names)}
        used = {name.split(".")[1] for name in imported(path) if name.startswith("transforms.")}
        assert used <= below, path


def test_transforms_never_import_pipelines_or_tests():
    for path in FILES:
        tops = {name.split(".")[0] for name in imported(path)}
        assert not tops & {"pipelines", "tests"}, path


def test_only_the_stages_of_the_flow_import_beam():
    for path in FILES:
        if "apache_beam" in {name.split(".")[0] for name in imported(path)}:
            assert module_of(path) in WITH_BEAM, path


@pytest.mark.parametrize(
    "modules",
    [
        "chunkers parsers tokenizers records fingerprint errors provenance".split(),
        sorted(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for path in FILES
            if module_of(path) in CORE
        ),
    ],
    ids=["packages", "every module of them"],
)
def test_importing_the_core_imports_no_beam(modules):
    script = "import sys\n" + "".join(f"import transforms.{name}\n" for name in modules)
    script += "print(*{name.split('.')[0] for name in sys.modules} & {'apache_beam', 'pipelines'})"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.split() == []


def test_no_other_distribution_claims_our_top_level_names():
    claims = set()
    for distribution in distributions():
        declared = (distribution.read_text("top_level.txt") or "").split()
        files = [file.parts[0].removesuffix(".py") for file in distribution.files or ()]
        if not {"pipelines", "transforms"}.isdisjoint([*declared, *files]):
            claims.add(distribution.metadata["Name"])
    assert claims <= {"chunkmill"}


def test_a_local_run_imports_no_client_of_beams_that_it_does_not_use(tmp_path):
    (tmp_path / "a.txt").write_text("Some text.")
    program = (
        "import sys\n"
        "from pipelines.cli import main\n"
        f"assert not main(['run', '--input', {str(tmp_path / 'a.txt')!r}, '--output', {str(tmp_path / 'out')!r}])\n"
        "assert 'apache_beam' in sys.modules\n"
        "from pipelines.beam_clients import _CLIENTS\n"
        "assert all(sys.modules[client] is None for client in _CLIENTS)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
