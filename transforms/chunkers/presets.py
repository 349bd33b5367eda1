"""Presets: the strategy and the defaults of other systems under their names, see `docs/presets.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transforms.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings that belong together.

    Args:
        strategy: Name of the strategy.
        settings: Its settings where they are not its defaults.
    """

    strategy: str
    settings: Mapping[str, Any] = field(default_factory=dict)


PRESETS: Mapping[str, Preset] = {
    "rag-chunker": Preset("heading_aware", {"chunk_size": 512, "chunk_overlap": 64}),
    "agrag-heading": Preset("heading", {"chunk_size": 256, "split_level": 2, "fallback": "recursive"}),
    "agrag-token": Preset("token", {"chunk_size": 256}),
    "neurosurfer": Preset("file_type"),
    "ragflow": Preset("delimiter", {"chunk_size": 512}),
    "ragflow-technical": Preset("delimiter", {"chunk_size": 512, "overlap_percent": 10}),
    "ragflow-legal": Preset("delimiter", {"chunk_size": 256, "overlap_percent": 20}),
    "ragflow-books": Preset("delimiter", {"chunk_size": 1024, "overlap_percent": 5}),
    "ragflow-qa": Preset("delimiter", {"chunk_size": 128}),
}


def preset_settings(
    preset: str, strategy: str | None, given: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The strategy and the settings of a preset, changed by what is given besides.

    Args:
        preset: Its name.
        strategy: A strategy that was chosen besides, or None.
        given: Settings that win over those of the preset.

    Raises:
        ConfigError: If there is no such preset, or another strategy was chosen.
    """
    chosen = PRESETS.get(preset)
    if chosen is None:
        raise ConfigError("preset", preset, f"unknown preset; known are {', '.join(PRESETS)}")
    if strategy not in (None, chosen.strategy):
        raise ConfigError(
            "chunker", strategy, f"preset {preset} is of the strategy {chosen.strategy}; give one of both"
        )
    settings = dict(chosen.settings)
    if "chunk_overlap" in given:
        # Two words for one thing.
        settings.pop("overlap_percent", None)
    return chosen.strategy, {**settings, **given}
