"""`make test` and `make test-fast` end all their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compactor_dev import REPOSITORY

# A server in a session of its own, whose parent is gone: an interrupt does not reach it.
_TEST = """
import subprocess, sys, time
from pathlib import Path

PROGRAM = '''
import os, subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                        start_new_session=True)
open(sys.argv[1], "w").write(str(left.pid))
'''

def test_waits(request):
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", PROGRAM, str(here / "pid.part")], check=True)
    (here / "pid.part").rename(here / "pid")
    time.sleep(float((here / "seconds").read_text()))
"""


def started(directory: Path, seconds: float) -> subprocess.Popen[bytes]:
    (directory / "test_waits.py").write_text(_TEST)
    (directory / "seconds").write_text(str(seconds))
    command = [sys.executable, "-m", "tests.support.runner", "-q", "-p", "no:cacheprovider"]
    root = ["--rootdir", str(directory), "-c", os.devnull, str(directory)]
    return subprocess.Popen([*command, *root], cwd=REPOSITORY, stdout=subprocess.DEVNULL)


def left_behind(directory: Path) -> bool:
    return Path(f"/proc/{(directory / 'pid').read_text()}").exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_tests_and_all_that_they_started(
    tmp_path: Path, sent: signal.Signals
) -> None:
    with started(tmp_path, 600) as runner:
        until = time.monotonic() + 120
        while not (tmp_path / "pid").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert left_behind(tmp_path)
        runner.send_signal(sent)
        assert runner.wait(120) == 130
    assert not left_behind(tmp_path)


def test_what_tests_leave_is_ended_and_their_exit_code_kept(tmp_path: Path) -> None:
    with started(tmp_path, 0) as runner:
        assert runner.wait(120) == 0
    assert not left_behind(tmp_path)
