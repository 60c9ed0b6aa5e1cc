"""A moto server in a process of its own, with all its services."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from typing import IO, Any

import boto3

from compactor_cli.machine.processes import Child, python_environment
from compactor_dev import IMPORT_ROOTS
from compactor_local.definition import REGION
from compactor_local.embedded import EmbeddedS3
from tests.infrastructure.cloud.recording import Request

_END_SECONDS = 5.0
_NOBODY = "nobody"


class Cloud(EmbeddedS3):
    """A moto server with all its services."""

    def __init__(self, server: Child, port: int) -> None:
        super().__init__(server, port)
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A client of one service, always the same: a deployment is asked through a dozen."""
        if service not in self._clients:
            make: Any = boto3.client
            self._clients[service] = make(
                service,
                endpoint_url=self.endpoint_url,
                region_name=REGION,
                aws_access_key_id=_NOBODY,
                aws_secret_access_key=_NOBODY,
            )
        return self._clients[service]

    def requests(self) -> list[Request]:
        """What was asked since the last time, the tests' own questions left out."""
        taken = [Request(**one) for one in self._take("requests")]
        return [one for one in taken if one.sender != _NOBODY]

    def noted(self) -> list[dict[str, Any]]:
        """The resources that moto has no type for, with references filled in."""
        found: list[dict[str, Any]] = self._take("noted")
        return found

    def forget(self) -> None:
        """Delete everything that is in it."""
        server = http.client.HTTPConnection(self.endpoint_url.removeprefix("http://"), timeout=60)
        server.request("POST", "/moto-api/reset")
        assert server.getresponse().status == HTTPStatus.OK
        server.close()
        self.noted()
        self.requests()

    def _take(self, what: str) -> Any:
        with self._lock:
            self._server.send({"take": what})
            return self._server.receive()


@contextlib.contextmanager
def cloud(log: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[Cloud]:
    """Run a moto server for the length of the block; everything in it is gone afterwards."""
    extra = {"MOTO_IAM_LOAD_MANAGED_POLICIES": "true"}
    environment = python_environment({**os.environ, **extra}, *IMPORT_ROOTS)
    server = Child("tests.infrastructure.cloud.server", environment=environment, log=log)
    try:
        yield Cloud(server, server.receive()["port"])
    finally:
        server.end(_END_SECONDS)
