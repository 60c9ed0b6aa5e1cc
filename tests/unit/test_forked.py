"""Workers that are forked from a process that has loaded what they need."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")

# Each in a process of its own: that of the tests may have threads.
_BEFORE = """
import json, os, signal, subprocess, sys, threading
from compactor_machine.forked import fork_children
from compactor_machine.wire import answer_stream, receive, send

def work():
    answers = answer_stream()
    print("printed", os.environ["WHO"])
    while (message := receive(sys.stdin.buffer)) is not None:
        if message == "fail":
            raise ValueError("as told")
        send(answers, [message, os.getpid(), os.environ["WHO"], os.getsid(0)])

def fork(count, log=subprocess.DEVNULL):
    return fork_children(count, work, environment={"WHO": "child"}, log=log)
"""


def ran(script: str, *words: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + script, *words],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_answers_in_its_own_process_with_the_environment_it_was_given() -> None:
    script = """
children = fork(3)
for n, child in enumerate(children):
    child.send(n)
answers = [child.receive(60.0) for child in children]
pids = [child.pid for child in children]
wanted = [[n, pid, "child", pid] for n, pid in enumerate(pids)]
print(json.dumps([answers == wanted, "WHO" in os.environ]))
"""
    assert ran(script) == [True, False]


def test_one_that_is_killed_or_fails_tells_how_and_its_words_are_in_the_log(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    script = """
with open(sys.argv[1], "wb") as log:
    killed, failing, left = fork(3, log)
os.kill(killed.pid, signal.SIGKILL)
failing.send("fail")
codes = []
for child in (killed, failing):
    try:
        child.receive(60.0)
    except EOFError:
        codes.append(child.end(60.0))
left.send("here")
print(json.dumps([codes, left.receive(60.0)[0], left.end(60.0), left.end()]))
"""
    assert ran(script, str(log)) == [[-9, 1], "here", 0, 0]
    assert "ValueError: as told" in log.read_text()
    assert "printed child" in log.read_text()


def test_they_end_with_the_process_that_forked_them() -> None:
    script = """
pids = [child.pid for child in fork(2)]
print(json.dumps(pids), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + script], stdout=subprocess.PIPE, timeout=240, check=False
    )
    pids = json.loads(done.stdout)
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while any(is_at_work(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_at_work(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_process_with_another_thread_forks_none() -> None:
    script = """
ended = threading.Event()
threading.Thread(target=ended.wait).start()
made = len(fork(2))
ended.set()
print(json.dumps(made))
"""
    assert ran(script) == 0
