"""What people get wrong on the real command line: one line, and what to do about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.support.embedded import find_embedded

SOURCE, DEST, EMPTY = "s3://mistakes/logs/", "s3://mistakes/lake/", "s3://mistakes/new/"
_DAY = b'{"id": 1}\n'
_OLD = 1_769_500_000.0
RUN = ("run", SOURCE, DEST)
PLAN = ("plan", SOURCE, DEST)

# Words, exit code, and what the answer has to name.
MISTAKES: list[tuple[tuple[str, ...], int, str]] = [
    # Misspelt.
    (("pln",), 2, "Did you mean one of: 'explain', 'plan'?"),
    (("cleanup", SOURCE, DEST), 2, "Did you mean 'clean-up'?"),
    ((*RUN, "--setle-seconds", "3"), 2, "--settle-seconds"),
    ((*RUN, "--dateformat", "%Y/%m/%d"), 2, "--date-format"),
    (("maintain", "pln"), 2, "Did you mean 'plan'?"),
    ((*RUN, "--retry-quarantined", "true"), 2, "--retry-quarantined is true"),
    (("run", "--input", "misspelt.json"), 2, "s3_source_uri"),
    (("run", "--input", "field.json"), 2, "settle_seconds"),
    (("run", "--input", "twice.json"), 2, "--input"),
    (("run", "--input", "broken.json"), 2, "--input"),
    (("run", "--input", "absent.json"), 2, "absent.json"),
    (("run", "--input", "."), 2, "--input"),
    ((*RUN, "--input", "field.json"), 2, "either a document or"),
    # Places.
    (("run", SOURCE), 2, "s3_destination_uri"),
    (("run",), 2, "s3_source_uri"),
    (("ls",), 2, "DEST"),
    (("run", "mistakes/logs/", DEST), 2, "s3://bucket/prefix/"),
    (("run", "./logs", DEST), 2, "s3://bucket/prefix/"),
    (("run", "s3:/mistakes/logs/", DEST), 2, "s3://bucket/prefix/"),
    (("run", "https://mistakes.s3.amazonaws.com/logs/", DEST), 2, "s3://bucket/prefix/"),
    (("run", "s3://Mistakes/logs/", DEST), 2, "there is no bucket Mistakes: is its name right"),
    (("run", "s3://mi/logs/", DEST), 2, "bucket name"),
    (("run", "s3://no-such-bucket/logs/", DEST), 2, "no-such-bucket"),
    (("run", SOURCE, "s3://no-such-bucket/lake/"), 2, "no-such-bucket"),
    (("scan", "s3://no-such-bucket/logs/"), 2, "no-such-bucket"),
    (("run", "s3://mistakes/lgos/", DEST), 2, "logs/"),
    (("plan", "s3://mistakes/lgos/", DEST), 2, "logs/"),
    (("scan", "s3://mistakes/lgos/"), 2, "logs/"),
    (("run", SOURCE, "s3://mistakes/logs/compacted/"), 2, "s3_destination_uri"),
    (("run", "s3://mistakes/", DEST), 2, "s3_destination_uri"),
    (("run", SOURCE, SOURCE), 2, "s3_destination_uri"),
    ((*RUN, "--state-uri", "s3://mistakes/lake/state/"), 2, "s3_state_uri"),
    # Dates and numbers.
    ((*RUN, "--window", "7d"), 2, "date_format"),
    ((*RUN, "--date-format", "YYYY/MM/DD"), 2, "%Y/%m/%d"),
    ((*RUN, "--date-format", "%Y/%m/%d", "--window", "31.01.2026.."), 2, "window"),
    ((*RUN, "--date-format", "%Y/%m/%d", "--window", "2026-02-30.."), 2, "window"),
    (
        (*RUN, "--date-format", "%Y/%m/%d", "--window", "2026-02-02..2026-02-01"),
        2,
        "window",
    ),
    ((*RUN, "--date-format", "%Y/%m/%d", "--depth", "2"), 2, "depth"),
    ((*RUN, "--window", "-1d", "--date-format", "%Y/%m/%d"), 2, "window"),
    ((*RUN, "--target-bytes", "lots"), 2, "target_bytes"),
    ((*RUN, "--target-bytes", "1"), 2, "target_bytes"),
    ((*RUN, "--settle-seconds", "-5"), 2, "settle_seconds"),
    ((*RUN, "--workers", "0"), 2, "1<=x<=1000"),
    ((*RUN, "--time-limit", "5"), 2, "at least 120 seconds"),
    ((*RUN, "--time-limit", "soon"), 2, "'soon' is not a valid float"),
    ((*RUN, "--output-format", "avro"), 2, "parquet"),
    ((*RUN, "--format", "xml"), 2, "--formats"),
    ((*RUN, "--delete-after", "yes"), 2, "30d"),
    ((*RUN, "--formats", "csv"), 2, "header: true or false"),
    ((*RUN, "--listing", "objects"), 2, "listing"),
    ((*RUN, "--reader-table", "lake.logs"), 2, "glue:"),
    # Endpoint, files.
    ((*RUN, "--endpoint-url", "localhost:9000"), 2, "http://localhost:9000"),
    ((*RUN, "--report-dir", "file.txt"), 2, "--report-dir"),
    ((*RUN, "--report-dir", "/proc/reports"), 2, "--report-dir"),
    ((*RUN, "--log", "/proc/log"), 2, "--log"),
    # After a run.
    (("verify", SOURCE, EMPTY), 2, "check that it is the destination of a run"),
    (("ls", EMPTY), 2, "check that it is the destination of a run"),
    (("restore", EMPTY, "--all", "-o", "back"), 2, "check that it is the destination of a run"),
    (("restore", DEST), 2, "ls shows"),
    (("restore", DEST, "--all"), 2, "--output"),
    (("restore", DEST, "logs/none.json"), 2, "ls"),
    (("restore", DEST, "logs/a.json", "-o", "kept"), 2, "--overwrite"),
    (("explain", DEST, "lake/none.json", "--record", "1"), 2, "ls"),
    (("explain", DEST, "lake/none.json", "--record", "0"), 2, "x>=1"),
    (("ls", DEST, "--long"), 2, "--json"),
    (("explain", DEST, "none.json"), 2, "none.json"),
    (("clean-up", SOURCE, DEST), 2, "--yes"),
    (("clean-up", SOURCE, DEST, "--delete-after", "-1d", "--yes"), 2, "delete_after"),
    (("runs", "show", "--state-uri", "lake"), 2, "s3://bucket/prefix/"),
    (("runs", "show", "--state-uri", EMPTY), 1, EMPTY),
    (("runs", "show", "--endpoint-url", "http://127.0.0.1:9"), 2, "--state-uri"),
    (("maintain", "plan"), 2, "table"),
    (("maintain", "plan", "events"), 2, "glue:"),
    (("maintain", "plan", "s3://mistakes/logs/"), 2, "delta:s3://bucket/prefix/"),
    (("demo", "--source", "absent"), 2, "--source"),
    # Of the newer commands.
    (("runs",), 2, "compactor runs --help"),
    (("runs", "lst"), 2, "Did you mean 'list'?"),
    (("runs", "show", "nightly"), 2, "compactor scan SOURCE --save nightly writes one"),
    (("runs", "list", "--most", "0"), 2, "1<=x<=1000"),
    (("runs", "show", DEST, "../x"), 2, "the id of a run"),
    (("runs", "show", DEST, "--html", "/proc/x.html"), 2, "--html"),
    (("table", "shows", SOURCE, DEST), 2, "Did you mean 'show'?"),
    (("table", "refresh", SOURCE, DEST), 2, "glue:DATABASE.TABLE"),
    (("table", "show", SOURCE, DEST), 2, "--reader-table"),
    (("maintain", "run"), 2, "s3_state_uri"),
    (("maintain", "run", "delta:s3://mistakes/t/"), 2, "s3_state_uri"),
    (("maintain", "plan", "--engine", "duck"), 2, "'spark'"),
    (("doctor",), 2, "DEST"),
    (("doctor", "lake"), 2, "an s3:// URI, or the name of a job"),
    (("doctor", "s3://no-such-bucket/lake/"), 2, "no-such-bucket"),
    (("repair", "event"), 2, "Did you mean 'events'?"),
    (("repair", "events", SOURCE, DEST), 2, "events:TABLE/STREAM"),
    (("repair", "events", SOURCE, DEST, "--time-limit", "nan"), 2, "is not a number"),
    (("repair", "table", SOURCE, DEST), 2, "added to a table"),
    (("repair", "table", SOURCE, DEST, "--as-is", "--add-missing"), 2, "--as-is"),
    (("explain", DEST), 2, "KEY"),
    (("demo", "--port", "99999"), 2, "a port from 1 to 65,535"),
]


@pytest.fixture(scope="module")
def world(s3: EmbeddedS3) -> EmbeddedS3:
    """One day of logs, compacted once."""
    keys = ("logs/a.json", "logs/b.json")
    s3.seed("mistakes", [SeedObject(key, _DAY, _OLD) for key in keys])
    assert main([*RUN, "--endpoint-url", s3.endpoint_url, "-q"]) == 0
    return s3


@pytest.fixture
def answer(
    world: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> Callable[..., tuple[int, str]]:
    """Run a command in a directory with files, against the embedded S3."""
    monkeypatch.chdir(tmp_path)
    find_embedded(world, monkeypatch)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    places = {"s3_source_uri": SOURCE, "s3_destination_uri": DEST}
    documents = {
        "misspelt.json": json.dumps({"s3_source_url": SOURCE}),
        "field.json": json.dumps({**places, "setle_seconds": 3}),
        "twice.json": '{"depth": 1, "depth": 2}',
        "broken.json": "{'depth': 1}",
        "file.txt": "",
        "kept/logs/a.json": "mine",
    }
    for name, text in documents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def run(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        code = main(list(words))
        return code, capfd.readouterr().err

    return run


@pytest.mark.parametrize(("words", "code", "way"), MISTAKES, ids=lambda one: str(one)[:60])
def test_a_mistake_is_answered_with_the_way_out(answer, words, code, way):
    found, err = answer(*words)
    assert (found, way in err) == (code, True), err
    assert err.removeprefix("read 1 object, 20 B\n").startswith("compactor")
    assert 1 <= err.count("\n") <= 2
    assert all(len(line) <= 600 for line in err.splitlines())


_SMALL_FILES = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
from compactor_cli.commands import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_disk_is_reported_with_its_path(answer, tmp_path: Path):
    words = ("restore", DEST, "logs/a.json", "-o", "full")
    done = subprocess.run(
        [sys.executable, "-B", "-c", _SMALL_FILES, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    happened, advice = done.stderr.splitlines()
    assert done.returncode == 1
    assert "full/logs/a.json" in happened
    assert advice.startswith("  free space there, or name another place")
