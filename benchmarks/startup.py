"""How long it takes before anything is cut."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from benchmarks.reference import ENCODING
from benchmarks.report import Options, Table, draw, main, note
from transforms.tokenizers import Engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LAPS = 5
_TEXT = "# Berths\n\nBerth 214 is 140 metres along the second quay.\n\n# Tides\n\nThe bar is passable at half flood.\n"
# An engine is timed inside of its process, which has begun and imported the package by then.
_LOAD = """
import time
from transforms.tokenizers import get_tokenizer
start = time.perf_counter()
get_tokenizer({encoding!r}, {engine!r})
print(time.perf_counter() - start)
"""


def run(options: Options) -> list[Table]:
    """Wall time of commands, imports and the loading of tokenizers."""
    laps = 2 if options.quick else _LAPS
    chunkmill = str(Path(sys.executable).with_name("chunkmill"))
    found: list[tuple[str, float | str]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tides.md"
        file.write_text(_TEXT, "utf-8")
        commands = {
            "Python alone": [sys.executable, "-c", ""],
            "import transforms.chunkers": [sys.executable, "-c", "import transforms.chunkers"],
            "chunkmill --help": [chunkmill, "--help"],
            "chunkmill run --help": [chunkmill, "run", "--help"],
            "chunkmill preview, two paragraphs": [chunkmill, "preview", str(file)],
        }
        for name, command in commands.items():
            note(f"startup: {name}")
            found.append((name, min(_wall(command) for _ in range(laps))))
    for engine in get_args(Engine):
        note(f"startup: engine {engine}")
        found.append((f"load {ENCODING}, engine {engine}", _load(engine, laps)))
    draw(options.output / "startup.png", "Start-up time", lambda axis: _bars(axis, found), (8, 4))
    about = (
        f"Wall time, the best of {laps}, each in a new process, files cached. Engines: from `get_tokenizer` to its "
        f"return, without the start of Python and its imports."
    )
    rows = [[name, f"{value:.3f}" if isinstance(value, float) else value] for name, value in found]
    return [Table("startup", "Start-up", about, (" what", "seconds"), rows)]


def _wall(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _load(engine: str, laps: int) -> float | str:
    """Seconds until an engine is loaded, or why it is not."""
    code = _LOAD.format(encoding=ENCODING, engine=engine)
    best = float("inf")
    for _ in range(laps):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if run.returncode:
            return (run.stderr.strip().splitlines() or ["no word"])[-1][:120]
        best = min(best, float(run.stdout))
    return best


def _bars(axis: Axes, found: Sequence[tuple[str, float | str]]) -> None:
    timed = [(name, value) for name, value in reversed(found) if isinstance(value, float)]
    bars = axis.barh([name for name, _ in timed], [value for _, value in timed], color="#1f77b4")
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.set_xlabel("seconds")
    axis.margins(x=0.1)


if __name__ == "__main__":
    main({"startup": run})
