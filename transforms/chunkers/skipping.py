"""Paths that are not worth chunks: what tools have made, what only tools read, and what every project has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate

_FOLDERS = ".git node_modules __pycache__ dist build .vscode .idea .vs .fleet .settings"
_NAMES = (
    # Lock files.
    "*.lock *.lockb package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum "
    # Secrets, and where a work tree has its repository.
    ".env* .git "
    # Images, archives, media.
    "*.png *.jpg *.jpeg *.gif *.webp *.avif *.heic *.bmp *.tif *.tiff *.ico *.svg "
    "*.zip *.tar *.gz *.tgz *.bz2 *.xz *.7z *.rar *.zst *.jar *.whl "
    "*.mp3 *.wav *.ogg *.oga *.opus *.flac *.m4a *.mp4 *.m4v *.webm *.mov *.mkv *.avi "
    # Settings of linters and formatters.
    ".eslintrc* .eslintignore eslint.config.* .prettierrc* .prettierignore prettier.config.* .stylelintrc* tslint.json "
    ".pylintrc .flake8 ruff.toml .ruff.toml .editorconfig .rubocop.yml .golangci.y*ml .markdownlint* .yamllint* "
    ".clang-format .clang-tidy "
    "license license.* codeowners contributing.md changelog.md"
)
SKIPPED = (*(f"{folder}/" for folder in _FOLDERS.split()), *_NAMES.split())


class SkipList:
    """Rules by which documents are skipped.

    Args:
        rules: `name/` for a folder anywhere in the path, else a name of the file; in any case, and `*`, `?` and
            `[...]` are as in a shell.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        self._folders = _Names([(rule, rule[:-1]) for rule in rules if rule.endswith("/")])
        self._files = _Names([(rule, rule) for rule in rules if not rule.endswith("/")])

    def rule_for(self, path: str) -> str | None:
        """The rule by which a document is skipped; None if it is not.

        Args:
            path: Its path or URI.
        """
        *folders, name = re.split(r"[/\\]", path.partition("://")[2] or path)
        for folder in folders:
            if rule := self._folders.rule_for(folder):
                return rule
        return self._files.rule_for(name)


class _Names:
    """Rules for names, each with its pattern."""

    def __init__(self, rules: Sequence[tuple[str, str]]) -> None:
        # One search for all: most names match none.
        patterns = [translate(pattern.casefold()) for _, pattern in rules]
        self._any = re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if rules else None
        self._each = [(rule, re.compile(pattern)) for (rule, _), pattern in zip(rules, patterns, strict=True)]

    def rule_for(self, name: str) -> str | None:
        name = name.casefold()
        if not name or self._any is None or not self._any.match(name):
            return None
        return next((rule for rule, pattern in self._each if pattern.match(name)), None)
