"""Front matter: the YAML or TOML that may stand before a Markdown text."""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Mapping

from transforms.parsers.decoding import normalize

_YAML = re.compile(r"---[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?=[\r\n]|\Z)", re.DOTALL)
_TOML = re.compile(r"\+\+\+[ \t]*(?:\r\n?|\n)(.*?)(?<=[\r\n])\+\+\+[ \t]*(?=[\r\n]|\Z)", re.DOTALL)
_LONGEST = 65_536
_DEEPEST = 32


def read_front_matter(text: str) -> tuple[int, dict[str, object]]:
    """End of the front matter, 0 if there is none, and its values, none if they cannot be read.

    YAML with aliases, front matter over 64 kB and values that JSON has no word for are not read. `---` before
    a blank line is a thematic break, unless a mapping follows.
    """
    if found := _YAML.match(text):
        values = _read(_yaml, found[1])
        is_break = not values and re.match(r"[ \t]*[\r\n]", found[1])
        return (0, {}) if is_break else (found.end(), values)
    if found := _TOML.match(text):
        return found.end(), _read(_toml, found[1])
    return 0, {}


def _read(load: Callable[[str], object], source: str) -> dict[str, object]:
    if len(source) > _LONGEST:
        return {}
    try:
        values = _json(load(source))
    # PyYAML raises what it likes: KeyError for `!!bool x`, AttributeError for `!!timestamp x`.
    except Exception:
        return {}
    return values if isinstance(values, dict) else {}


def _yaml(source: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # A few lines of aliases can stand for terabytes.
    if "*" in source and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source, loader)):
        raise ValueError("aliases")
    return yaml.load(source, loader)


def _toml(source: str) -> object:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib.loads(source)
    return None


def _json(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return normalize(value).text
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(_json(key, depth)): _json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item, depth + 1) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and value.bit_length() < 64:
        return value
    raise ValueError(f"{type(value).__name__} is not JSON")
