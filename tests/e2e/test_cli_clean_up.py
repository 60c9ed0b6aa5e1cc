"""``compactor clean-up`` against an embedded S3, as a person calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from compactor_local.embedded import EmbeddedS3
from tests.conftest import REPO_ROOT
from tests.e2e.test_cli_commands import EACH, PARTITIONS, Lake


def clean_up(lake: Lake, *words: str) -> subprocess.CompletedProcess[str]:
    """With no terminal on either side."""
    command = [
        sys.executable,
        "-m",
        "compactor_cli",
        "clean-up",
        *lake.uris,
        *lake.endpoint,
    ]
    return subprocess.run(
        [*command, "--delete-after", "0d", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=REPO_ROOT,
        env={**os.environ, "PYTHONPATH": "functions:scripts:spark:."},
    )


def test_sources_are_deleted_but_for_those_of_an_output_that_was_tampered_with(
    s3: EmbeddedS3,
) -> None:
    lake = Lake(s3)
    lake.compact()
    before = lake.keys()
    dry = clean_up(lake, "--dry-run")
    assert (dry.returncode, dry.stderr) == (0, "")
    assert f"{PARTITIONS} partitions" in dry.stdout
    assert lake.keys() == before
    assert clean_up(lake).returncode == 2, "nobody can be asked"
    spoiled = next(key for key in before if key.startswith("compacted/p3/"))
    size = len(lake.read(spoiled))
    lake.client.put_object(Bucket=lake.bucket, Key=spoiled, Body=b"x" * size)
    done = clean_up(lake, "--yes", "--json")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 2, "what happened, and what follows"
    document = json.loads(done.stdout)
    (line,) = (line for one in document["partitions"] for line in one["unsafe"])
    assert spoiled in line
    left = list(lake.keys("logs/"))
    assert {key.split("/")[1] for key in left} == {"p3"}
    assert document["done"]["deleted"] == PARTITIONS * EACH - len(left)
    again = clean_up(lake, "--yes")
    assert again.returncode == 1
    assert spoiled in again.stderr
    assert "1 partition " in again.stdout, "the others are done with"
