#!/usr/bin/env bash
# Locks what is installed, for every Python and platform at once: the only way these files are written.
#   requirements/compile.sh                     after a change of pyproject.toml
#   requirements/compile.sh --upgrade           for the newest versions
#   requirements/compile.sh -P pyarrow==25.0.1  for one package
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
  uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
    --custom-compile-command requirements/compile.sh "$@"
}

# What runs: the job on a laptop, in a container, on a worker.
compile pyproject.toml --extra fast --output-file requirements/run.txt "$@"
# What tests, checks and builds it, with the same versions.
compile pyproject.toml requirements/dev.in --extra fast --group dev --constraints requirements/run.txt \
  --output-file requirements/dev.txt "$@"
