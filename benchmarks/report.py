"""What benchmarks have in common: their command line, and their tables and figures."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from transforms.chunkers import CHUNKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PEERS = (
    "langchain-text-splitters",
    "llama-index-core",
    "chonkie",
    "semchunk",
    "semantic-text-splitter",
    "haystack-ai",
    "docling-slim",
    "docling-core",
    "tree-sitter-language-pack",
)
_BEGAN = time.perf_counter()
_ROOT = Path(__file__).parent.parent
_ORDER = (
    *(f"chunkers_{family}" for family in ("prose", "small", "code", "json", "markdown", "tables")),
    *("laws", "job", "growth", "startup"),
)


@dataclass(frozen=True)
class Options:
    """What a benchmark is told.

    Args:
        corpus: Folder of Parquet files; None where it is not needed.
        output: Folder for tables and figures.
        quick: Whether to do only as much as shows that everything works.
        budget: Bytes of the corpus that chunkers are measured on.
        strategies: Strategies of ours that are looked at.
    """

    corpus: Path | None
    output: Path
    quick: bool
    budget: int
    strategies: Sequence[str]

    @property
    def documents(self) -> Path:
        """The corpus, which is needed."""
        if self.corpus is None:
            raise SystemExit("this benchmark needs --corpus DIR, a folder of Parquet files")
        return self.corpus


@dataclass(frozen=True)
class Table:
    """A result.

    Args:
        name: Stem of its files.
        title: What it shows.
        about: How it was measured.
        header: Names of the columns; those that begin with a space are aligned to the left.
        rows: Cells, as they are shown.
    """

    name: str
    title: str
    about: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table as a section of its own."""
        rule = [":--" if column.startswith(" ") else "--:" for column in self.header]
        lines = [self.header, rule, *self.rows]
        table = "\n".join(
            f"| {' | '.join(cell.strip().replace('|', '¦') for cell in row)} |" for row in lines
        )
        return f"## {self.title}\n\n{self.about}\n\n{table}\n"


Benchmark = Callable[[Options], Sequence[Table]]


def main(benchmarks: Mapping[str, Benchmark]) -> None:
    """Run benchmarks from the command line, write what they find, and collect all that was ever found.

    Args:
        benchmarks: The benchmarks by name.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="folder of Parquet files: document_id, text, media_type")
    parser.add_argument("--output", type=Path, default=_ROOT / "benchmarks" / "results")
    parser.add_argument(
        "--budget", type=float, default=4, help="MB that chunkers are measured on; default: 4"
    )
    parser.add_argument("--quick", action="store_true", help="tiny inputs: shows that it works, not how fast")
    parser.add_argument(
        "--strategies",
        nargs="+",
        choices=list(CHUNKERS),
        default=list(CHUNKERS),
        metavar="STRATEGY",
        help="strategies of ours; default: all",
    )
    if len(benchmarks) > 1:
        parser.add_argument("--only", nargs="+", choices=list(benchmarks), default=list(benchmarks))
    flags = parser.parse_args()
    if not importlib.util.find_spec("matplotlib"):
        parser.error("matplotlib is missing: install the dependency group `bench`")
    options = Options(flags.corpus, flags.output, flags.quick, int(flags.budget * 1e6), flags.strategies)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in getattr(flags, "only", benchmarks):
        load = os.getloadavg()[0]
        for table in benchmarks[name](options):
            when = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
            how = f"load {load:.1f} when it began" + "; `--quick`: no figures to quote" * options.quick
            text = f"{table.markdown()}\n"
            for figure in sorted(options.output.glob(f"{table.name}*.png")):
                text += f"![{table.title}]({figure.name})\n\n"
            text += f"{when}, chunkmill {_revision()}, {how}.\n"
            (options.output / f"{table.name}.md").write_text(text, "utf-8")
        _collect(options.output)
    note(f"written to {options.output}")


def _collect(output: Path) -> None:
    sections = [output / f"{name}.md" for name in _ORDER if (output / f"{name}.md").is_file()]
    texts = [section.read_text("utf-8") for section in sections]
    (output / "README.md").write_text("\n".join(["# Benchmarks\n", machine(), *texts]), "utf-8")


def machine() -> str:
    """The machine and the versions of all that is compared."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(
        f"{name} {_version(name)}" for name in ("chunkmill", "tiktoken", "fastokens", *PEERS)
    )
    return (
        f"- machine: {_cpu()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}\n"
        f"- Python {platform.python_version()}, apache-beam {_version('apache-beam')}, "
        f"pyarrow {_version('pyarrow')}, numpy {_version('numpy')}\n"
        f"- {versions}\n"
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _revision() -> str:
    command = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or _version("chunkmill")


def note(text: str) -> None:
    """Say how far it has come."""
    print(f"{time.perf_counter() - _BEGAN:7.1f} s  {text}", file=sys.stderr, flush=True)


def draw(path: Path, title: str, plot: Callable[[Axes], object], size: tuple[float, float] = (8, 5)) -> None:
    """Write a figure of one pair of axes.

    Args:
        path: The PNG.
        title: The one thing it says.
        plot: What draws it.
        size: Width and height in inches.
    """
    draw_many(path, title, [plot], 1, size)


def draw_many(
    path: Path, title: str, plots: Sequence[Callable[[Axes], object]], columns: int, size: tuple[float, float]
) -> None:
    """Write a figure of several pairs of axes.

    Args:
        path: The PNG.
        title: The one thing it says.
        plots: What draws each.
        columns: How many stand side by side.
        size: Width and height in inches.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = -(-len(plots) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for plot, axis in zip(plots, axes.flat, strict=False):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
        axis.set_axisbelow(True)
        plot(axis)
    for axis in list(axes.flat)[len(plots) :]:
        axis.set_visible(False)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def unlog(axis: Axes, which: str, ticks: Iterable[float]) -> None:
    """Label an axis with a logarithmic scale in plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    target = axis.xaxis if which == "x" else axis.yaxis
    target.set_major_locator(FixedLocator(list(ticks)))
    target.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    target.set_minor_formatter(NullFormatter())
