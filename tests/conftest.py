"""Settings and the outputs that tests share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import fsspec
import pytest
from hypothesis import HealthCheck, Phase, settings

# Explaining a failure traces every line of every example, which takes most of the time.
PHASES = [phase for phase in Phase if phase is not Phase.explain]

# A derandomised CI gives the same verdict twice; a longer, random hunt is one variable away.
COMMON = {"deadline": None, "phases": PHASES, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", max_examples=2000, derandomize=True, **COMMON)
settings.register_profile("quick", max_examples=200, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# A shell starts background jobs with the interrupt ignored; so would be all that tests start, and then interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Spark's server lives for seconds here, too short to pay for its best compiler and collector: two thirds of the time.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture
def spark_jar(request: pytest.FixtureRequest) -> str:
    """The jar that Spark is in; where it or Java is missing, the test is left out, or fails where it must not be."""
    from pipelines import runners  # imports Beam, which most tests do without

    jar = runners._cached_jar()
    missing = [] if shutil.which("java") else ["java"]
    missing += [] if jar else ["the job server jar (templates/spark/build_job_server.py)"]
    if missing:
        left_out = f"{request.node.name} not run: missing {' and '.join(missing)}"
        (pytest.fail if os.environ.get("CHUNKMILL_REQUIRE_SPARK") == "1" else pytest.skip)(left_out)
    return str(jar)


@pytest.fixture(params=["local", "memory"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An output that does not exist yet."""
    if request.param == "local":
        yield str(tmp_path / "table")
        return
    root = f"memory://{uuid4().hex}"
    yield root
    memory = fsspec.filesystem("memory")
    for path in memory.glob(f"{root}*"):
        memory.rm(path, recursive=True)
