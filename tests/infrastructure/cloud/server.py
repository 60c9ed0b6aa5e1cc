"""The cloud's own process: moto's server, its S3 put right, what it was asked kept.

Started as ``python -m tests.infrastructure.cloud.server``. Takes orders on standard input: objects
to store, as :mod:`scripts.local.s3_server` does; ``{"take": "requests"}`` and ``{"take": "noted"}``
for what was recorded and what the shims noted. Ends when standard input closes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from scripts.local import s3_patches, s3_web
from scripts.local.wire import receive, send
from tests.infrastructure.cloud import shims
from tests.infrastructure.cloud.recording import Recorder


class _QuietHandler(MotoRequestHandler):
    """Logs nothing per request."""

    def log_request(self, *_: Any) -> None:
        pass


def main() -> None:
    """Serve until whoever started this is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    s3_patches.install()
    shims.install()
    moto: Any = DomainDispatcherApplication(create_backend_app)
    conditional = s3_web.serve_conditionally(moto)
    recorder = Recorder(s3_web.serve_reads(s3_web.take_bodies(conditional)))
    server = make_server("127.0.0.1", 0, recorder, threaded=True, request_handler=_QuietHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    send(answers, {"port": server.server_port})
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
    body = sys.stdin.buffer.read(sum(one[1] for one in order["objects"]))
    return {"stored": s3_patches.store(order["bucket"], order["objects"], body)}


if __name__ == "__main__":
    main()
