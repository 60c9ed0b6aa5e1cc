"""S3 servers in separate processes, each with its own empty store.

    with real_server("versitygw") as server:
        client = make_client(server.endpoint_url)

versitygw is a gateway that stores objects in files, and keeps most of S3's promises. The others are
in :mod:`tests.support.server_differences`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import server_builds
from tests.support.server_builds import Unavailable
from tests.support.server_differences import Condition, strict

__all__ = ["REAL_SERVERS", "RealServer", "Unavailable", "real_server"]

# The credentials that tests/conftest.py sets for every test.
_ACCESS_KEY, _SECRET_KEY = "testing", "testing"
_HOST = "127.0.0.1"
_START_SECONDS = 240
_STOP_SECONDS = 10
_LOWEST_PORT, _PORTS, _EACH = 12_000, 18_000, 60
_ports = (_LOWEST_PORT + (os.getpid() * _EACH + number) % _PORTS for number in range(_PORTS))
# The server ends when its standard input closes, so it never outlives its parent.
_SUPERVISED = '"$@" & server=$!; cat; kill $server; wait $server'


@dataclass(frozen=True)
class RealServer:
    """A running server.

    Attributes:
        strict: the conditions that it enforces like S3.
    """

    endpoint_url: str
    access_key: str
    secret_key: str
    name: str
    strict: frozenset[Condition]


@dataclass(frozen=True)
class _Start:
    command: list[str]
    environment: Mapping[str, str]


def _versitygw(directory: Path, port: int) -> _Start:
    program = str(server_builds.versitygw())
    objects, versions, metadata = (directory / name for name in ("objects", "versions", "metadata"))
    for place in (objects, versions, metadata):
        place.mkdir()
    # Metadata is stored in files: not every file system has extended attributes.
    places = ["--sidecar", str(metadata), "--versioning-dir", str(versions), str(objects)]
    listen = ["--quiet", "--keep-alive", "--port", f"{_HOST}:{port}"]
    keys = {"ROOT_ACCESS_KEY": _ACCESS_KEY, "ROOT_SECRET_KEY": _SECRET_KEY}
    return _Start([program, *listen, "posix", *places], keys)


_STARTS: Mapping[str, Callable[[Path, int], _Start]] = {
    "versitygw": _versitygw,
}
REAL_SERVERS = tuple(_STARTS)


@contextmanager
def real_server(name: str) -> Iterator[RealServer]:
    """Run a server of this name on a free port; its store is deleted with the context.

    Raises:
        Unavailable: it is not available on this machine; gives the reason.
    """
    with _running(name, _STARTS[name]) as url:
        yield RealServer(url, _ACCESS_KEY, _SECRET_KEY, name, strict(name))


@contextmanager
def dynamodb_local() -> Iterator[str]:
    """Yield the URL of an empty DynamoDB Local, which ends with the context.

    Raises:
        Unavailable: it is not available on this machine; gives the reason.
    """
    with _running("dynamodb-local", _dynamodb_local) as url:
        yield url


def _dynamodb_local(directory: Path, port: int) -> _Start:
    jars = server_builds.dynamodb_local()
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += [f"-Djava.library.path={jars}", "-cp", f"{jars}/*"]
    main = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
    return _Start([*java, main, "-inMemory", "-disableTelemetry", "-port", str(port)], {})


@contextmanager
def _running(name: str, starts: Callable[[Path, int], _Start]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as temporary:
        directory = Path(temporary)
        port = _free_port()
        start = starts(directory, port)
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISED, "sh", *start.command],
                cwd=directory,
                env={**os.environ, **start.environment},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        try:
            _wait_until_open(name, port, directory / "log")
            yield f"http://{_HOST}:{port}"
        finally:
            _stop(process)


def _free_port() -> int:
    """Return a port that will still be free when the server binds it.

    It is below the system's ephemeral ports, and other processes start from other ports.
    """
    for port in _ports:
        with contextlib.suppress(OSError), socket.create_server((_HOST, port)):
            return port
    raise RuntimeError("no port is free")


def _wait_until_open(name: str, port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                said = log.read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"{name} does not listen on port {port}: {said}") from None
            time.sleep(0.05)
        else:
            return


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
