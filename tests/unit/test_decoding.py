"""Threads that first decode concurrently; the type's first use crashed the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
{prepare}
at_once = threading.Barrier(8)

def decode():
    at_once.wait()
    {decode}

threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
_COMMIT = """
from compactor.log.entries import (Commit, Output)
from compactor.log.state import (LogState, RunTotals)
from compactor.log.encoding import (
    decode_checkpoint, decode_commit, encode_checkpoint, encode_commit)
from compactor.model import Compression, StoredPart
output = Output("b", "k", "u", (StoredPart(1, "e", 2),), 2, 3, 4, 5, None, Compression.NONE)
commit = encode_commit(Commit(1, "i", "r", 1.0, "b", "g", output))
state = LogState(last=1, runs={"r": RunTotals()})
checkpoint = encode_checkpoint(state, "p/")
"""
_RECEIPTS = """
import msgspec
from compactor.cleaning.clean_up_receipts import CleanUpReceipt, decode as decode_clean_up
from compactor.partition.receipts import Receipt, decode as decode_receipt
receipt = msgspec.json.encode(Receipt("p", "r", "done"))
clean_up = msgspec.json.encode(CleanUpReceipt("p", "r"))
"""


@pytest.mark.parametrize(
    ("prepare", "decode"),
    [
        (_COMMIT, "decode_commit(commit)"),
        (_COMMIT, "decode_checkpoint(checkpoint, 'p/')"),
        (_RECEIPTS, "decode_receipt(receipt)"),
        (_RECEIPTS, "decode_clean_up(clean_up)"),
    ],
    ids=["commit", "checkpoint", "receipt", "receipt of clean-up"],
)
def test_many_threads_may_be_the_first_to_decode(prepare, decode, repo_root):
    program = _PROGRAM.format(prepare=prepare, decode=decode)
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=repo_root,
            env={"PYTHONPATH": "functions"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
