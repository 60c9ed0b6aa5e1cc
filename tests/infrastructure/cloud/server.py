"""The cloud's own process: moto's server, and what it was asked is kept.

Started as ``python -m tests.infrastructure.cloud.server``. Takes orders on standard input: objects
to store, as the embedded S3's own server does; ``{"take": "requests"}`` and ``{"take": "noted"}``
for what was recorded and what the shims noted. Ends when standard input closes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from compactor_cli.machine.processes import receive, send
from compactor_local.s3_server import moto_application, serve, take_order
from tests.infrastructure.cloud import shims
from tests.infrastructure.cloud.recording import Recorder


def main() -> None:
    """Serve until whoever started this is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    shims.install()
    recorder = Recorder(moto_application())
    send(answers, {"port": serve(recorder)})
    while (order := receive(sys.stdin.buffer)) is not None:
        send(answers, _answer(order, recorder))
    os._exit(0)


def _answer(order: Mapping[str, Any], recorder: Recorder) -> Any:
    if order.get("take") == "requests":
        return recorder.take()
    if order.get("take") == "noted":
        taken = [*shims.noted]
        shims.noted.clear()
        return taken
    return take_order(order, sys.stdin.buffer)


if __name__ == "__main__":
    main()
