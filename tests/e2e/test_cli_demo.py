"""`compactor demo` as a person starts it."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.support.progress_lines import without_progress

pytestmark = pytest.mark.timeout(1_800)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
# On a machine with much else to do; a tenth of it on a quiet one.
LONGEST_SECONDS = 600


def demo(*words: str, **given) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "compactor_cli", "demo", "--workers", "2", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **{"env": ENVIRONMENT, **given},
    )


def test_the_demo_compacts_real_cloudtrail_objects_into_one(real_cloudtrail, tmp_path):
    process = demo("--source", str(real_cloudtrail), "--json", "--report-dir", str(tmp_path))
    out, err = process.communicate(timeout=LONGEST_SECONDS)
    assert (process.returncode, without_progress(err)) == (0, "")
    document = json.loads(out)
    verified = document["verified"]
    assert (verified["findings"], verified["deep"]) == ([], [])
    assert (verified["records"], verified["sources"], verified["outputs"]) == (2_611, 44, 1)
    assert document["summary"]["partitions"] == 1
    assert document["summary"]["objects_after"] == 1
    assert json.loads((tmp_path / "report.json").read_text())["totals"]["records"] == 2_611
    assert "<html" in (tmp_path / "report.html").read_text()


def table(out: str) -> dict[str, list[str]]:
    """The cells of the table by the first of their row."""
    return {
        cells[0].strip(): [cell.strip() for cell in cells[1:]]
        for cells in (re.split(r"  +", line) for line in out.splitlines() if "  " in line)
    }


def test_the_demo_on_generated_logs_shows_the_table_and_what_was_verified(tmp_path):
    directory = str(tmp_path / "new")
    process = demo("--objects", "210", "--report-dir", directory)
    out, err = process.communicate(timeout=LONGEST_SECONDS)
    assert (process.returncode, without_progress(err)) == (0, "")
    rows = table(out)
    assert rows["Partitions"][0] == "12"
    assert rows["Objects"][0] == "210"
    assert int(rows["Objects"][1]) >= 12
    assert rows["Records"][0] == rows["Records"][1]
    assert f": {rows['Records'][0]} records of 210 sources are in exactly one of" in out
    assert f"report: {tmp_path / 'new' / 'report.html'}" in out


def test_a_directory_without_a_readable_log_is_not_called_verified(tmp_path):
    source = tmp_path / "logs"
    source.mkdir()
    (source / "broken.gz").write_bytes(gzip.compress(b"cut off " * 1_000, mtime=0)[:-20])
    process = demo("--source", str(source), "--report-dir", str(tmp_path))
    out, err = process.communicate(timeout=LONGEST_SECONDS)
    assert process.returncode == 1
    assert "verified" not in out
    assert "left alone: 1 object" in out
    assert without_progress(err) == "compactor: nothing was compacted\n"


def processes_with(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_text(errors="replace"):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def interrupt(process: subprocess.Popen[str], mark: str, *, once_there: str) -> None:
    """Interrupt the demo as soon as it runs a certain program; nothing of it may be left."""
    deadline = time.monotonic() + LONGEST_SECONDS
    try:
        while not any(once_there in line for line in processes_with(mark)):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        # Nothing of a test that failed goes on beside the others.
        process.kill()
    assert process.returncode == 130
    assert (out, without_progress(err)) == (
        "",
        "compactor: interrupted; committed work is kept\n",
    )
    deadline = time.monotonic() + 60
    while left := processes_with(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


looks_at_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="there is no /proc to look at"
)


@looks_at_proc
def test_an_interrupt_ends_the_demo_and_everything_it_started(tmp_path):
    mark = uuid.uuid4().hex
    process = demo("--report-dir", str(tmp_path), env={**ENVIRONMENT, "MARK": mark})
    interrupt(process, mark, once_there="engine_process")
