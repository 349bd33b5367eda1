"""Builds Beam's Spark job server jar once, into the user's cache, and prints its path."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_POM = Path(__file__).with_name("pom.xml")
_NEEDS = {"java": "openjdk-17-jdk-headless", "mvn": "maven"}


def jar_path() -> Path:
    """Where the jar of this pom is, or will be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chunkmill"
    return cache / f"spark-job-server-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}.jar"


def build(jar: Path) -> None:
    """Builds the jar; takes two minutes and 700 MB of disk when Maven has none of the parts."""
    missing = [package for command, package in _NEEDS.items() if shutil.which(command) is None]
    if missing:
        sys.exit(f"The Spark job server is built with Java 17 and Maven: apt-get install {' '.join(missing)}")
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="build-") as folder:
        maven = ["mvn", "-q", "-B", "-f", str(_POM), f"-DoutputDirectory={folder}", "package"]
        # Only the path may reach stdout.
        if status := subprocess.run(maven, stdout=sys.stderr, check=False).returncode:
            sys.exit(f"Maven failed with status {status}, see above.")
        Path(folder, "job-server.jar").replace(jar)


if __name__ == "__main__":
    jar = jar_path()
    if not jar.is_file():
        build(jar)
    print(jar)
