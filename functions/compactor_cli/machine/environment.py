"""Environment variables and log files of child processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import botocore.session

from compactor.errors import InvalidInput
from compactor_cli.machine.installed import import_roots
from compactor_cli.machine.processes import python_environment

# Used if neither the environment nor a profile names a region.
_REGION = "us-east-1"


@contextlib.contextmanager
def opened_log(path: Path | None) -> Iterator[IO[bytes] | int]:
    """Open a log for the output of processes, in append mode; None discards the output.

    Raises:
        InvalidInput: it cannot be opened.
    """
    if path is None:
        yield subprocess.DEVNULL
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("ab")
    except OSError as error:
        raise InvalidInput("--log", str(path), f"a writable file ({error})") from None
    with log:
        yield log


def _configured_region() -> str | None:
    region: str | None = botocore.session.get_session().get_config_variable("region")
    return region


def engine_environment(extra: Mapping[str, str], endpoint_url: str | None) -> dict[str, str]:
    """Return the environment of the engine and its handlers."""
    merged = {
        "POWERTOOLS_SERVICE_NAME": "s3-compactor",
        "POWERTOOLS_METRICS_NAMESPACE": "s3-compactor",
        "POWERTOOLS_TRACE_DISABLED": "true",
        **os.environ,
        **extra,
    }
    if "AWS_DEFAULT_REGION" not in merged:
        region = merged.get("AWS_REGION") or _configured_region() or _REGION
        merged["AWS_DEFAULT_REGION"] = region
    # Lambda sets both names.
    merged["AWS_REGION"] = merged["AWS_DEFAULT_REGION"]
    if endpoint_url is not None:
        merged["AWS_ENDPOINT_URL_S3"] = endpoint_url
    return python_environment(
        {**merged, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        extra.get("PYTHONPATH", ""),
        *import_roots(),
    )
