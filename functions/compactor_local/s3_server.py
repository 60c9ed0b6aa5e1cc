"""The process of the embedded S3: moto's server on a loopback port.

Started by :mod:`compactor_local.embedded` as ``python -m compactor_local.s3_server PORT``, where 0
means any free port. Sends its port on standard output, receives objects to store on standard input,
and exits when that closes. With ``--lake``, patched SQS, DynamoDB and Glue are served on the same
port.
"""

from __future__ import annotations

import datetime
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.exceptions import BucketAlreadyExists, InvalidBucketName
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from compactor_cli.machine.processes import answer_stream, receive, send
from compactor_local.definition import ACCOUNT, REGION

#: Serves SQS, DynamoDB and Glue too.
LAKE = "--lake"


def moto_application() -> Any:
    """Return moto's server as a WSGI application."""
    return DomainDispatcherApplication(create_backend_app)


def serve(application: Any, port: int = 0) -> int:
    """Serve until the process ends; returns the loopback port (0: any free)."""
    # One line per request otherwise.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", port, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.port


def store(bucket: str, header: Sequence[Sequence[Any]], body: bytes) -> int:
    """Store objects directly in moto's store; returns their number.

    Args:
        bucket: created if it does not exist.
        header: key, size, last modified (UNIX seconds or None) and storage class of each.
        body: their contents, concatenated.

    Raises:
        ValueError: S3 does not accept the bucket's name.
    """
    backend = s3_backends[ACCOUNT]["aws"]
    try:
        backend.create_bucket(bucket, REGION)
    except BucketAlreadyExists:
        pass
    except InvalidBucketName as error:
        raise ValueError(f"{bucket!r} is not a valid bucket name") from error
    place = 0
    for key, size, last_modified, storage_class in header:
        stored = backend.put_object(
            bucket, key, body[place : place + size], storage_class, disable_notification=True
        )
        place += size
        if last_modified is not None:
            moment = datetime.datetime.fromtimestamp(last_modified, datetime.UTC)
            stored.last_modified = moment.replace(tzinfo=None)
    return len(header)


def take_order(order: Any, source: IO[bytes]) -> dict[str, Any]:
    """Store the objects of an order, whose contents follow it; returns the answer."""
    body = source.read(sum(size for _, size, *_ in order["objects"]))
    try:
        return {"stored": store(order["bucket"], order["objects"], body)}
    except ValueError as error:
        return {"error": str(error)}


def main() -> None:
    """Serve until the parent process is gone."""
    answers = answer_stream()
    if LAKE in sys.argv[2:]:
        from compactor_local import aws_patches  # noqa: PLC0415 - needs what nothing else does

        aws_patches.install()
    send(answers, {"port": serve(moto_application(), int(sys.argv[1]))})
    while (order := receive(sys.stdin.buffer)) is not None:
        send(answers, take_order(order, sys.stdin.buffer))
    os._exit(0)


if __name__ == "__main__":
    main()
