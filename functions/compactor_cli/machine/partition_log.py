"""The log of a run on this machine: one JSON document per line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO

from compactor.orchestration.messages import Order


def log_line(
    log: IO[bytes] | int, level: str, run_id: str, order: Order, message: str, **more: str
) -> None:
    """Write a log line about an order; errors of writing are ignored.

    Args:
        log: the log; a number means that it is discarded.
        level: such as ``ERROR``.
        run_id: of the run.
        order: the order.
        message: text.
        more: further fields.
    """
    if isinstance(log, int):
        return
    line = {
        "level": level,
        "message": message,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "run_id": run_id,
        "path": order.path,
        **more,
    }
    # A full disk must not end a run: the receipts have the results. Written unbuffered, because
    # closing the log would write a buffer again.
    with suppress(OSError):
        os.write(log.fileno(), json.dumps(line).encode() + b"\n")
