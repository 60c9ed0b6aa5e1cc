"""Messages between a process and its children, however the pipe between them delivers these."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor_cli.machine.processes import Child, python_environment

_SECONDS = 60.0
_MODULE = """
import json, struct, sys, time

def framed(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body

stream = sys.stdout.buffer
stream.write(framed({"line": "merging"}) + framed({"code": 0}))
stream.flush()
sys.stdin.buffer.read(4)
long = framed("x" * 200_000)
for piece in (long[:2], long[2:7], long[7:]):
    stream.write(piece)
    stream.flush()
    time.sleep(0.05)
sys.stdin.buffer.read()
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    (tmp_path / "told_by_a_test.py").write_text(_MODULE)
    environment = python_environment({**os.environ, "PYTHONPATH": ""}, str(tmp_path))
    child = Child("told_by_a_test", environment=environment)
    yield child
    child.end()


def test_messages_that_come_together_are_received_one_by_one(child: Child) -> None:
    # By the time that somebody looks, both are in the pipe.
    time.sleep(0.5)
    assert child.receive(_SECONDS) == {"line": "merging"}
    assert child.receive(_SECONDS) == {"code": 0}
    with pytest.raises(TimeoutError):
        child.receive(0.05)


def test_a_message_that_comes_in_pieces_is_received_whole(child: Child) -> None:
    for _ in range(2):
        child.receive(_SECONDS)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(child.receive(_SECONDS)), daemon=True)
    reader.start()
    child.send("")
    reader.join(_SECONDS)
    assert found == ["x" * 200_000]
