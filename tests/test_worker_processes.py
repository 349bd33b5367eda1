"""Workers are forked from the command where that is safe, and none stays behind."""

import os
import signal
import textwrap
import threading
from pathlib import Path

import pytest
from sessions import ONE_THREAD, processes_of_session, session, wait_until

pytest.importorskip("apache_beam")

from pipelines import worker_processes

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="only where threads can be counted"
)


@pytest.fixture
def run(tmp_path):
    """A command with two workers, in a script that does something else first."""
    docs = tmp_path / "in"
    docs.mkdir()
    for number in range(4):
        (docs / f"{number}.txt").write_text(f"Ship {number} is in port.\n")

    def started(first):
        script = tmp_path / "command.py"
        end = "import sys\nfrom pipelines import cli\nsys.exit(cli.main(sys.argv[1:]))\n"
        script.write_text(f"SEEN = {str(tmp_path / 'seen')!r}\n{textwrap.dedent(first)}\n{end}")
        flags = ["--input", docs, "--output", tmp_path / "out", "--tokenizer", "character", "--workers", 2]
        return session(script, "run", *flags)

    return started


COUNTED = """
import os, threading

def count():
    with open(SEEN, "a") as seen:
        seen.write(f"{threading.active_count()} {len(os.listdir('/proc/self/task'))} ")

os.register_at_fork(before=count)
for name in NAMES:
    os.environ.pop(name, None)
"""


def test_the_command_forks_each_worker_while_it_has_a_single_thread(run, tmp_path):
    with run(f"NAMES = {list(ONE_THREAD)}\n{COUNTED}") as command:
        _, errors = command.communicate(timeout=100)
    assert command.returncode == 0, errors.decode()
    assert (tmp_path / "seen").read_text().split() == ["1", "1"] * 2


def test_nothing_is_forked_beside_another_thread():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    with worker_processes.standing_by(1):
        assert worker_processes._standing_by == []
    done.set()
    thread.join()


DIE = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize(
    "first",
    [
        f"import os, signal\nos.register_at_fork(after_in_child=lambda: {DIE})",
        f"import os, signal, transforms.waves\ntransforms.waves.Wave.spill = lambda *_: {DIE}",
    ],
    ids=["before it starts", "at work"],
)
def test_forked_worker_that_is_killed_ends_the_run_and_is_named(run, first):
    with run(first) as command:
        _, errors = command.communicate(timeout=100)
        assert command.returncode == 1
        assert "RuntimeError: a worker process ended, status -9" in errors.decode()
        assert processes_of_session(command.pid) == []


WAIT = """
import time
from pathlib import Path
import pipelines.chunk_corpus, transforms.waves

def wait(*_):
    Path(SEEN).touch()
    time.sleep(600)

"""


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "place", ["pipelines.chunk_corpus.prepare", "transforms.waves.Wave.spill"], ids=["standing by", "at work"]
)
def test_workers_end_with_the_command(run, tmp_path, place, stop):
    with run(f"{WAIT}{place} = wait") as command:
        wait_until((tmp_path / "seen").exists, seconds=100)
        workers = processes_of_session(command.pid)
        os.kill(command.pid, stop)
        _, errors = command.communicate(timeout=60)
        assert command.returncode in (-stop, 128 + stop), errors.decode()
        assert len(workers) == 3
        wait_until(lambda: processes_of_session(command.pid) == [], seconds=20)
