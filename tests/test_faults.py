"""Whatever breaks a run off: readers see the old table or the new one, and the same run finishes it."""

import subprocess
import sys
from pathlib import Path

import pytest
from faults import MODES

pytest.importorskip("apache_beam")

SCRIPT = Path(__file__).with_name("faults.py")


# In a process of its own, since it forks.
def broken_off(fault, mode, runs):
    """What breaking off some runs printed, and whether all went well."""
    command = [sys.executable, SCRIPT, "--faults", fault, "--modes", mode, "--runs", str(runs)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["launcher killed", "launcher killed in the commit"])
def test_a_run_that_is_killed_at_any_moment_leaves_a_whole_table_and_is_finished_by_a_rerun(fault, mode):
    status, printed = broken_off(fault, mode, 4)
    assert status == 0, printed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", ["worker killed", "disk full", "clock off"])
def test_a_run_survives(fault, mode):
    status, printed = broken_off(fault, mode, 1 if fault == "worker killed" else 3)
    assert status == 0, printed
