"""The process of the embedded S3: moto's server on a loopback port.

Started by :mod:`compactor_local.embedded` as ``python -m compactor_local.s3_server PORT``, where 0
means any free port. Sends its port on standard output, receives objects to store and requests for
the number of GETs on standard input, and exits when that closes. With ``--lake``, patched SQS,
DynamoDB and Glue are served on the same port.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from compactor_cli.machine.wire import answer_stream, receive, send
from compactor_local import s3_patches, s3_reads, s3_writes
from compactor_local.s3_counts import CountedGets
from compactor_local.s3_http import serve

#: Serves SQS, DynamoDB and Glue too.
LAKE = "--lake"


def application() -> CountedGets:
    """Return moto's server as a WSGI application; its patches must be installed before."""
    moto: Any = DomainDispatcherApplication(create_backend_app)
    writes = s3_writes.serve_conditionally(s3_writes.serve_writes(moto))
    return CountedGets(s3_reads.serve_reads(writes))


def main() -> None:
    """Serve until the parent process is gone."""
    answers = answer_stream()
    s3_patches.install()
    if LAKE in sys.argv[2:]:
        from compactor_local import aws_patches  # noqa: PLC0415 - needs what nothing else does

        aws_patches.install()
    served = application()
    send(answers, {"port": serve(served, int(sys.argv[1]))})
    _take_orders(sys.stdin.buffer, answers, served)
    os._exit(0)


def _take_orders(source: IO[bytes], answers: IO[bytes], served: CountedGets) -> None:
    while (order := receive(source)) is not None:
        if "objects" not in order:
            send(answers, {"gets": served.gets})
            continue
        body = source.read(sum(one[1] for one in order["objects"]))
        try:
            send(answers, {"stored": s3_patches.store(order["bucket"], order["objects"], body)})
        except ValueError as error:
            send(answers, {"error": str(error)})


if __name__ == "__main__":
    main()
