"""Makes parquet/documents.parquet: some two hundred documents of an invented harbour office.

Run `python sample/build.py` after a change of phrases.yaml; the same phrases give the same rows.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

HERE = Path(__file__).parent
OUTPUT = HERE / "parquet" / "documents.parquet"
SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("uri", pa.string()),
        pa.field("text", pa.string()),
        pa.field("media_type", pa.string()),
        pa.field("title", pa.string()),
        pa.field("language", pa.string()),
        pa.field("license", pa.string()),
        pa.field("acl_labels", pa.list_(pa.string())),
        pa.field("metadata", pa.string()),
    ]
)
_SLOT = re.compile(r"\{(\d+)-(\d+)\}|\{([^{}]*?)(\d*)\}")


class Writer:
    """Draws one document from the phrases of its language.

    Args:
        language: The phrases.
        draw: Source of all choices.
    """

    def __init__(self, language: dict[str, Any], draw: random.Random) -> None:
        self._joiner = language["joiner"]
        self._draw = draw
        # In a random order, so that the n-th word of a list is another one in every document.
        self._words = {name: draw.sample(words, len(words)) for name, words in language["words"].items()}
        self._decks: dict[int, list[str]] = {}

    def line(self, template: str) -> str:
        """The template with every slot filled."""

        def fill(slot: re.Match[str]) -> str:
            low, high, name, at = slot.groups()
            if low:
                return str(self._draw.randint(int(low), int(high)))
            return str(self._words[name][int(at or 1) - 1])

        text = _SLOT.sub(fill, template)
        return text[:1].upper() + text[1:]

    def paragraph(self, slots: list[Any]) -> str:
        """One line for each slot, joined."""
        lines = [slot if isinstance(slot, str) else self._deal(slot) for slot in slots]
        parts = [self.line(line) for line in lines if line]
        text = self._joiner.join(parts)
        return text.replace("\n\n" + self._joiner, "\n\n")

    def text(self, paragraphs: list[Any]) -> str:
        """All paragraphs, with blank lines between."""
        made = []
        for paragraph in paragraphs:
            if isinstance(paragraph, dict):
                times = self._draw.randint(*paragraph["repeat"])
                entries = [self.paragraph(paragraph["lines"]) for _ in range(times)]
                made += sorted(entries, key=_time) if paragraph.get("sort") else entries
            else:
                made.append(self.paragraph(paragraph))
        return "\n\n".join(made) + "\n"

    def _deal(self, lines: list[str]) -> str:
        """A line that has not been drawn before, as long as there are any."""
        deck = self._decks.get(id(lines)) or self._draw.sample(lines, len(lines))
        self._decks[id(lines)] = deck
        return deck.pop()


def _time(entry: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", entry)[:2]))


def rows() -> list[dict[str, object]]:
    """The rows of the table."""
    phrases = yaml.safe_load((HERE / "phrases.yaml").read_text("utf-8"))
    made: list[dict[str, object]] = []
    for code, language in phrases.items():
        for genre in language["genres"]:
            for number in range(genre["count"]):
                draw = random.Random(f"{code} {genre['name']} {number}")
                writer = Writer(language, draw)
                title = writer.line(genre["title"])
                suffix = "md" if genre["media_type"] == "text/markdown" else "txt"
                internal = genre["name"] in ("incident report", "minutes")
                facts = {
                    "genre": genre["name"],
                    "number": number + 1,
                    "received": f"2025-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
                }
                made.append(
                    {
                        "document_id": f"skerrow-{len(made):04}",
                        "uri": f"archive://skerrow/{code}/{len(made):04}.{suffix}",
                        "text": writer.text(genre["text"]),
                        "media_type": genre["media_type"],
                        "title": title,
                        "language": code,
                        "license": "CC0-1.0",
                        "acl_labels": ["harbour-office", "committee"] if internal else ["public"],
                        "metadata": json.dumps(facts, ensure_ascii=False, sort_keys=True),
                    }
                )
    return made


def main() -> None:
    """Write the table."""
    OUTPUT.parent.mkdir(exist_ok=True)
    table = pa.Table.from_pylist(rows(), schema=SCHEMA)
    pq.write_table(table, OUTPUT, row_group_size=64, compression="zstd")


if __name__ == "__main__":
    main()
