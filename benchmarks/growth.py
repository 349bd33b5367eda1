"""Time against size on hostile text: twice the text, twice the time, whatever the text."""

from __future__ import annotations

import base64
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.reference import ENCODING, cpu_seconds
from benchmarks.report import Options, Table, draw_many, main, note, unlog
from transforms.chunkers import get_chunker
from transforms.records import Document
from transforms.tokenizers import get_tokenizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOUBLINGS = 4
_QUICK_SHRINK = 50
_LAPS = 2
# No larger text is tried once one takes this long: four times as much would come next, if it is not linear.
_PATIENCE_SECONDS = 60.0
_TOKENIZER = "encode alone"


@dataclass(frozen=True)
class Hostile:
    """A kind of text.

    Args:
        name: What it is.
        size: Its full size.
        unit: What the size counts.
        make: The text of a size. Where the fast encoder could remember it, another one for each variant.
        media_type: Its media type.
    """

    name: str
    size: int
    unit: str
    make: Callable[[int, int], str]
    media_type: str = "text/plain"


def _letters(size: int, variant: int) -> str:
    return chr(ord("a") + variant % 26) * (size + variant)


def _base64(size: int, variant: int) -> str:
    return base64.b64encode(random.Random(variant).randbytes(size * 3 // 4)).decode()


def _headings(size: int, _: int) -> str:
    return "".join(f"{'#' * (place % 6 + 1)} Heading {place}\n\n" for place in range(size))


def _table(size: int, variant: int) -> str:
    return "| a | b |\n| --- | --- |\n" + "".join(f"| One. Two. | {row + variant} |\n" for row in range(size))


def _brackets(size: int, variant: int) -> str:
    return "[" * (size + variant) + "]" * (size + variant)


HOSTILE = (
    Hostile("one line without spaces", 5_000_000, "bytes", lambda size, _: "x1-y2_z3/" * (size // 9)),
    Hostile("newlines", 200_000, "newlines", lambda size, variant: "a" + "\n" * (size + variant) + "b"),
    Hostile("one letter", 1_000_000, "bytes", _letters),
    Hostile("base64", 1_000_000, "bytes", _base64),
    Hostile("headings", 100_000, "headings", _headings, "text/markdown"),
    Hostile("nested lists", 10_000, "levels", lambda size, _: "- " * size + "item\n", "text/markdown"),
    Hostile("one table", 20_000, "rows", _table, "text/markdown"),
    Hostile("nested JSON", 100_000, "levels", _brackets, "application/json"),
)


@dataclass(frozen=True)
class Growth:
    """What one strategy needs for one kind of text.

    Args:
        text: The kind of text.
        strategy: The strategy.
        sizes: Sizes, each twice the one before.
        seconds: CPU seconds of each.
    """

    text: Hostile
    strategy: str
    sizes: Sequence[int]
    seconds: Sequence[float]

    @property
    def exponent(self) -> float:
        """Power of the size with which the time grows, over the last two doublings, or the last if there is one."""
        steps = min(2, len(self.seconds) - 1)
        return math.log2(self.seconds[-1] / self.seconds[-1 - steps]) / steps if steps else math.nan


def run(options: Options) -> list[Table]:
    """Every strategy on every kind of text."""
    shrink = _QUICK_SHRINK if options.quick else 1
    _cutter("recursive")(HOSTILE[0], "warm")
    found = [
        _measure(text, strategy, place * _LAPS, text.size // shrink)
        for text in HOSTILE
        for place, strategy in enumerate((_TOKENIZER, *options.strategies))
    ]
    draw_many(
        options.output / "growth.png",
        "Time against size on hostile text (dotted: twice the text, twice the time)",
        [_plot(text, [one for one in found if one.text is text]) for text in HOSTILE],
        4,
        (17, 7.5),
    )
    halves = [f"÷ {2**step}" for step in range(_DOUBLINGS, 0, -1)]
    about = (
        f"CPU seconds for one document at its full size and at parts of it, 512 tokens of {ENCODING}, no overlap, "
        f"engine `auto`, the best of {_LAPS}; Markdown with its parse. Exponent: the power of the size with which "
        f"the time grows over the last two doublings; 1 is proportional, 2 is four times the time for twice the "
        f"text. Encode alone: what the tokenizer needs to encode the text, the floor of every strategy. After "
        f"{_PATIENCE_SECONDS:.0f} s no larger text is tried."
    )
    header = (" text", " full size", " strategy", *halves, "full", "exponent")
    return [Table("growth", "Growth on hostile text", about, header, [_row(one) for one in found])]


def _measure(text: Hostile, strategy: str, variant: int, size: int) -> Growth:
    note(f"growth: {text.name}, {strategy}")
    cut = _cutter(strategy)
    sizes: list[int] = []
    seconds: list[float] = []
    for step in range(_DOUBLINGS, -1, -1):
        sizes.append(size // 2**step)
        best = math.inf
        for lap in range(_LAPS):
            content = text.make(sizes[-1], variant + lap)
            best = min(best, cpu_seconds(partial(cut, text, content)))
            if best > _PATIENCE_SECONDS / 4:
                break
        seconds.append(max(best, time.get_clock_info("process_time").resolution))
        if best > _PATIENCE_SECONDS:
            break
    return Growth(text, strategy, sizes, seconds)


def _cutter(strategy: str) -> Callable[[Hostile, str], object]:
    if strategy == _TOKENIZER:
        tokenizer = get_tokenizer(ENCODING)
        return lambda _, content: tokenizer.boundaries(content)
    chunker = get_chunker(strategy, chunk_size=512, chunk_overlap=0, tokenizer=ENCODING)
    return lambda text, content: chunker.chunk(Document("hostile", content, text.media_type))


def _row(one: Growth) -> list[str]:
    seconds = [f"{spent:.3f}" for spent in one.seconds]
    seconds += ["not tried"] * (_DOUBLINGS + 1 - len(seconds))
    size = f"{one.sizes[0] * 2**_DOUBLINGS:,} {one.text.unit}"
    return [one.text.name, size, one.strategy, *seconds, f"{one.exponent:.2f}"]


def _plot(text: Hostile, found: Sequence[Growth]) -> Callable[[Axes], None]:
    def plot(axis: Axes) -> None:
        from matplotlib import colormaps

        axis.set_prop_cycle(color=colormaps["tab20"].colors)
        for one in found:
            style = "k--" if one.strategy == _TOKENIZER else "o-"
            axis.plot(one.sizes, one.seconds, style, markersize=4, linewidth=1.2, label=one.strategy)
        longest = max(found, key=lambda one: one.seconds[0])
        first, last = longest.sizes[0], found[0].sizes[-1]
        slope = [longest.seconds[0] * 1.5, longest.seconds[0] * 1.5 * last / first]
        axis.plot([first, last], slope, ":", color="grey")
        axis.set_xscale("log")
        axis.set_yscale("log")
        unlog(axis, "x", [first, first * 4, first * 16])
        axis.set_title(text.name, fontsize=10)
        axis.set_xlabel(text.unit)
        axis.set_ylabel("CPU seconds")
        if text is HOSTILE[0]:
            axis.figure.legend(loc="outside right upper", fontsize=9)

    return plot


if __name__ == "__main__":
    main({"growth": run})
