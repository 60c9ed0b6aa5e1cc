"""What a run on this machine writes to its log: a JSON document a line."""

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
    """Write what became of an order, if that is possible.

    Args:
        log: where to; a number stands for a log that is dropped.
        level: such as ``ERROR``.
        run_id: of the run.
        order: what it is about.
        message: for a person.
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
    # A full disk ends no run: what counts is in the receipts. Nothing is left in a buffer either,
    # which would be tried again when the log is closed.
    with suppress(OSError):
        os.write(log.fileno(), json.dumps(line).encode() + b"\n")
