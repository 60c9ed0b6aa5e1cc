"""What a worker does before its first request: each cold start pays for it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

FUNCTIONS = Path(__file__).resolve().parents[2] / "functions"

# Of each the one place that imports it is beside the work that needs it: few workers do that.
NOT_NEEDED = [
    # tables, and the table for readers
    "compactor.catalogs.delta",
    "compactor.catalogs.iceberg",
    "compactor.readers.reader_catalog",
    "compactor.readers.refresh",
    "compactor.readers.states",
    "compactor.aws.glue_reader",
    "compactor.sinks",
    # restoring
    "compactor.outputs.restore",
    # listings other than LIST
    "compactor.aws.registry",
    # the other functions' work
    "compactor.cleaning",
    "compactor.discovery.discover",
    "compactor_tables",
    "compactor.report",
    "compactor.scanning",
    "compactor.orchestration",
    "compactor.rows",
    # libraries
    "aws_xray_sdk",
    "boto3",
    "jinja2",
    "pyarrow",
    "pyiceberg",
    "rich",
]


def printed(code: str) -> str:
    """What a process of its own prints."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(FUNCTIONS)},
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


@cache
def imported() -> frozenset[str]:
    """The modules that the compaction function has once Lambda has imported its handler."""
    told = "import sys, compactor_handlers.compact_partition; print(*sys.modules)"
    return frozenset(printed(told).split())


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_a_worker_imports_nothing_of_a_duty_that_its_partition_may_not_have(name: str) -> None:
    assert find_spec(name) is not None, "a name that nothing has guards nothing"
    found = sorted(one for one in imported() if one == name or one.startswith(f"{name}."))
    assert found == []


def test_what_every_partition_needs_is_imported_before_its_first_request() -> None:
    # Lambda gives a starting function a whole processor, whatever its memory.
    assert imported() >= {
        "compactor.formats.known_formats",
        "compactor.log.log",
        "compactor.outputs.compact",
        "compactor.outputs.verify",
        "compactor.partition.run",
        "compactor.s3.store",
        "pycurl",
    }


def test_cycles_are_looked_for_rarely_from_the_first_import_of_a_handler_on() -> None:
    told = "import gc, compactor_handlers; print(gc.isenabled(), *gc.get_threshold())"
    assert printed(told).split() == ["True", "100000", "50", "50"]
    # Before that package nothing of ours is imported, and nothing that botocore brings.
    assert "botocore" not in printed("import sys, compactor_handlers; print(*sys.modules)").split()
