"""Paths that are not worth chunks: what tools have made, what only tools read, and what every project has."""

from __future__ import annotations

from collections.abc import Sequence

from transforms.path_patterns import end_of_path, path_regex

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
        rules: The end of a path, from the beginning of a name on, as a pattern in lower case: `*.lock`, `docs/old.md`;
            `folder/` for all that is below a folder. It is met in any case.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        # One search for all: most paths match none.
        self._any = end_of_path(*rules)
        self._each = [(rule, end_of_path(rule)) for rule in rules]

    def rule_for(self, path: str) -> str | None:
        """The rule by which a document is skipped; None if it is not.

        Args:
            path: Its path or URI.
        """
        path = (path.partition("://")[2] or path).replace("\\", "/").casefold()
        if not self._any.search(path):
            return None
        return next(rule for rule, pattern in self._each if pattern.search(path))


def skip_rule(text: str) -> str:
    """A rule as a `SkipList` takes it.

    Args:
        text: What the user wrote.

    Raises:
        ValueError: If no path could meet it.
    """
    rule = text.replace("\\", "/").casefold()
    if not rule.strip("/ "):
        raise ValueError(f"{text!r} names nothing to skip")
    path_regex(rule)
    return rule
