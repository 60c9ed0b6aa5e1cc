"""The process of the embedded S3: moto's server on a loopback port.

Started by :mod:`compactor_local.embedded` as ``python -m compactor_local.s3_server PORT``, where 0
means any free port. Sends its port on standard output, receives objects to store on standard input,
and exits when that closes. moto's SQS, DynamoDB and Glue are on the same port; ``--lake`` speeds
them up.
"""

from __future__ import annotations

import copy
import datetime
import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

from moto import backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.exceptions import BucketAlreadyExists, InvalidBucketName, NoSuchUpload
from moto.s3.models import S3Backend, s3_backends
from werkzeug.serving import make_server

from compactor_cli.machine.processes import answer_stream, receive, send
from compactor_local import replace
from compactor_local.definition import ACCOUNT, REGION

#: Speeds up SQS and DynamoDB.
LAKE = "--lake"


def patch_s3() -> None:
    """Answer as S3 does for an aborted upload, and read moto's services once.

    moto 5.2.5 answers 500 instead of NoSuchUpload, and reads its directory for each request.
    """
    services = tuple(backends.list_of_moto_modules())
    replace(backends, "list_of_moto_modules", lambda: services)
    for name in ("upload_part", "upload_part_copy", "complete_multipart_upload"):
        _require_upload(name)


def _require_upload(name: str) -> None:
    """Make an operation raise NoSuchUpload unless the upload that it names exists."""

    def checked(backend: Any, bucket: str, upload_id: str, *values: Any, **named: Any) -> Any:
        if upload_id not in backend.get_bucket(bucket).multiparts:
            raise NoSuchUpload(upload_id)
        return existing(backend, bucket, upload_id, *values, **named)

    existing = replace(S3Backend, name, checked)


def speed_up_lake() -> None:
    """Replace parts of moto's SQS and DynamoDB whose time grows with messages and items.

    moto 5.2.5 counts the messages of a queue for each message received, sorts the items of a table
    for each query, and copies the table for each action of a transaction. Without that copy, a
    refused transaction keeps what it wrote; the demonstration has none, as each of its objects is
    written once.
    """
    from moto.dynamodb.models.table import Table  # noqa: PLC0415 - only the extra lake has its needs
    from moto.sqs.models import SQSBackend  # noqa: PLC0415 - as above

    def query(table: Any, hash_key: Any, *arguments: Any, **named: Any) -> Any:
        queried = copy.copy(table)
        queried.items = {hash_key: table.items[hash_key]} if hash_key in table.items else {}
        return query_of_all(queried, hash_key, *arguments, **named)

    replace(SQSBackend, "is_message_valid_based_on_retention_period", lambda *_: True)
    query_of_all = replace(Table, "query", query)
    setattr(Table, "__deepcopy__", lambda table, _: table)  # noqa: B010 - moto's class has none


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
    patch_s3()
    if LAKE in sys.argv[2:]:
        speed_up_lake()
    send(answers, {"port": serve(moto_application(), int(sys.argv[1]))})
    while (order := receive(sys.stdin.buffer)) is not None:
        send(answers, take_order(order, sys.stdin.buffer))
    os._exit(0)


if __name__ == "__main__":
    main()
