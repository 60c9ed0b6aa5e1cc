"""An embedded S3 that runs for the length of a ``with`` block."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import boto3

from compactor_cli.machine.extras import require
from compactor_cli.machine.installed import import_roots
from compactor_cli.machine.processes import Child, python_environment
from compactor_local import EngineError
from compactor_local.definition import REGION

_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_OBJECTS = 2_000
_END_SECONDS = 5.0
_OF_A_LAKE = ("SQS", "DYNAMODB", "GLUE")


@dataclass(frozen=True, slots=True)
class SeedObject:
    """One object to put into the embedded S3.

    Attributes:
        key: its key.
        body: its content.
        last_modified: UNIX seconds; None for the present time.
        storage_class: in S3's terms.
    """

    key: str
    body: bytes
    last_modified: float | None = None
    storage_class: str = "STANDARD"


class EmbeddedS3:
    """A running embedded S3.

    Attributes:
        endpoint_url: where it listens, on the loopback interface.
    """

    def __init__(self, server: Child, port: int, *, lake: bool = False) -> None:
        self.endpoint_url = f"http://127.0.0.1:{port}"
        self._services = ("S3", *_OF_A_LAKE) if lake else ("S3",)
        self._server = server
        self._lock = threading.Lock()

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that make boto3 use this S3 and no real account.

        An empty value means: remove the variable.
        """
        return {
            **{f"AWS_ENDPOINT_URL_{name}": self.endpoint_url for name in self._services},
            "AWS_ACCESS_KEY_ID": "embedded",
            "AWS_SECRET_ACCESS_KEY": "embedded",
            "AWS_SESSION_TOKEN": "",
            "AWS_PROFILE": "",
            "AWS_DEFAULT_PROFILE": "",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client of one of its services, independent of the environment."""
        given = self.environment
        return boto3.client(
            service,  # type: ignore[call-overload] # any of several
            endpoint_url=self.endpoint_url,
            region_name=REGION,
            aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        )

    def create_bucket(self, bucket: str) -> None:
        """Create a bucket unless it exists.

        Raises:
            EngineError: S3 does not accept the name.
        """
        self._ask({"bucket": bucket, "objects": []}, b"")

    def seed(self, bucket: str, objects: Iterable[SeedObject]) -> int:
        """Store objects within the server's process, thousands a second; returns the number.

        The bucket is created if it does not exist.
        """
        count = 0
        self.create_bucket(bucket)
        for batch in _batches(objects):
            header = [
                [one.key, len(one.body), one.last_modified, one.storage_class] for one in batch
            ]
            body = b"".join(one.body for one in batch)
            count += self._ask({"bucket": bucket, "objects": header}, body)["stored"]
        return count

    def _ask(self, header: Mapping[str, Any], body: bytes) -> dict[str, int]:
        with self._lock:
            try:
                self._server.send(header, body)
                answer = self._server.receive()
            except EOFError:
                raise EngineError("the embedded S3 has exited") from None
        if "error" in answer:
            raise EngineError(f"the embedded S3 rejected the request: {answer['error']}")
        return dict(answer)


def _batches(objects: Iterable[SeedObject]) -> Iterator[Sequence[SeedObject]]:
    batch: list[SeedObject] = []
    size = 0
    for one in objects:
        batch.append(one)
        size += len(one.body)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_OBJECTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextlib.contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the process within the block; an empty value removes one."""
    before = dict(os.environ)
    try:
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def embedded_s3(*, port: int = 0, lake: bool = False) -> Iterator[EmbeddedS3]:
    """Run an S3 in its own process on a loopback port within the block.

    Its content is in memory and is lost at the end. Its process ends with this one, even if this
    one is killed.

    Args:
        port: port to listen on; 0 for any free one.
        lake: adds SQS, DynamoDB and Glue on the same port.

    Raises:
        ExtraMissing: the extra ``local`` is not installed.
        EngineError: it did not start.
    """
    require("lake" if lake else "local", "the embedded S3")
    environment = python_environment(os.environ, *import_roots())
    server = Child(
        "compactor_local.s3_server",
        [str(port), *(["--lake"] if lake else [])],
        environment=environment,
        log=subprocess.DEVNULL,
        detached=True,
    )
    try:
        try:
            ready = server.receive()
        except EOFError:
            raise EngineError("the embedded S3 did not start") from None
        yield EmbeddedS3(server, ready["port"], lake=lake)
    finally:
        server.end(_END_SECONDS)
