"""Runs Trino's server, and a client for it.

It reads tables of a Glue Data Catalog and objects of an S3, at separate endpoints. Athena is based
on Trino, and reads the same tables in the same way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from compactor.errors import TransientStoreError
from tests.support.trino.build import VERSION, TrinoHere

_REGION = "us-east-1"
_START_SECONDS = 300.0
_END_SECONDS = 20.0
_QUERY_SECONDS = 900.0
# Trino answers within a second, with an empty page if it has no rows yet.
_PAGE_SECONDS = 60.0
# Error code until a worker is available.
_NO_WORKER, _AGAIN_SECONDS = "NO_NODES_AVAILABLE", 0.5
_CATALOG = "glue"
_MEMORY_MB = 3_072
# Kills the server when standard input closes, so that it does not outlive this process.
_SUPERVISED = (
    'exec 3<&0; "$@" 3<&- & server=$!; { cat <&3 >/dev/null; kill $server; } & wait $server'
)
_HEADERS = {"X-Trino-User": "compactor", "X-Trino-Catalog": _CATALOG, "X-Trino-Time-Zone": "UTC"}
# From Trino's documentation.
_JAVA = (
    f"-Xmx{_MEMORY_MB}m",
    "-XX:+UseG1GC",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:ReservedCodeCacheSize=512M",
    "-XX:+EnableDynamicAgentLoading",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
# Without full compilation, the start takes two thirds of the time.
_QUICK = ("-XX:TieredStopAtLevel=1",)


class QueryFailed(TransientStoreError):
    """Trino did not answer a statement; the message has its reason, if any."""


class _NoWorker(QueryFailed):
    """There was no worker; the statement was not run."""


@dataclass(frozen=True, slots=True)
class Places:
    """The endpoints that a server reads.

    Attributes:
        s3_url: endpoint of the S3 with the objects.
        glue_url: endpoint of the Glue with the tables.
    """

    s3_url: str
    glue_url: str


class Trino:
    """A running server.

    Args:
        url: URL of the server.
    """

    version = VERSION

    def __init__(self, url: str) -> None:
        self._url = url
        # Ignores proxies in the environment.
        self._http = urllib3.PoolManager(retries=False)

    def ask(self, statement: str) -> list[list[Any]]:
        """Return the rows of a statement.

        It is retried while there is no worker: a server takes some seconds after its start to
        register its catalogs.

        Raises:
            QueryFailed: it failed or took too long, or the server has exited.
        """
        end = time.monotonic() + _QUERY_SECONDS
        while True:
            try:
                return self._asked(statement, end)
            except _NoWorker:
                if time.monotonic() > end:
                    raise
            time.sleep(_AGAIN_SECONDS)

    def _asked(self, statement: str, end: float) -> list[list[Any]]:
        page = self._page("POST", f"{self._url}/v1/statement", statement)
        rows: list[list[Any]] = []
        while True:
            rows += page.get("data", ())
            if "error" in page:
                failed = _NoWorker if page["error"].get("errorName") == _NO_WORKER else QueryFailed
                raise failed(f"Trino: {page['error']['message']}")
            if "nextUri" not in page:
                return rows
            if time.monotonic() > end:
                raise QueryFailed(f"Trino: no answer within {_QUERY_SECONDS:.0f} s")
            page = self._page("GET", page["nextUri"])

    def is_ready(self) -> bool:
        """Return whether the server answers queries."""
        with contextlib.suppress(QueryFailed):
            return self._asked("SELECT 1", time.monotonic() + _PAGE_SECONDS) == [[1]]
        return False

    def _page(self, method: str, url: str, body: str | None = None) -> Mapping[str, Any]:
        try:
            answer = self._http.request(
                method, url, body=body, headers=_HEADERS, timeout=_PAGE_SECONDS
            )
        except urllib3.exceptions.HTTPError as error:
            raise QueryFailed(f"Trino: {' '.join(str(error).split())[:200]}") from None
        if answer.status != 200:
            raise QueryFailed(f"Trino: status {answer.status}")
        found: Mapping[str, Any] = answer.json()
        return found


def configuration(places: Places, port: int, threads: int) -> Mapping[str, str]:
    """Return the configuration files, by their relative paths.

    Args:
        places: the endpoints.
        port: its port on the loopback interface.
        threads: number of worker threads; 0 for its default, two per processor.
    """
    server = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": port,
        "discovery.uri": f"http://127.0.0.1:{port}",
        "query.max-memory": f"{_MEMORY_MB // 2}MB",
        "query.max-memory-per-node": f"{_MEMORY_MB // 2}MB",
        **({"task.max-worker-threads": threads} if threads else {}),
    }
    catalog = {
        "connector.name": "hive",
        "hive.metastore": "glue",
        "hive.metastore.glue.endpoint-url": places.glue_url,
        "hive.metastore.glue.region": _REGION,
        "hive.metastore.glue.aws-access-key": "embedded",
        "hive.metastore.glue.aws-secret-key": "embedded",
        # As Athena; a Hive partition may have levels below it.
        "hive.recursive-directories": "true",
        # As Athena; partitions need not be in the catalog.
        "hive.partition-projection-enabled": "true",
        # moto lacks column statistics, which Trino would request repeatedly.
        "hive.table-statistics-enabled": "false",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": places.s3_url,
        "s3.region": _REGION,
        "s3.path-style-access": "true",
        "s3.aws-access-key": "embedded",
        "s3.aws-secret-key": "embedded",
    }
    node = {
        "node.environment": "local",
        "node.id": "one",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
    }
    return {
        "config.properties": _lines(server),
        "node.properties": _lines(node),
        "log.properties": _lines({"io.trino": "WARN"}),
        f"catalog/{_CATALOG}.properties": _lines(catalog),
    }


@contextlib.contextmanager
def running(
    here: TrinoHere, places: Places, directory: Path, threads: int = 0, *, quick: bool = False
) -> Iterator[Trino]:
    """Run Trino within the block; it starts in about half a minute.

    Args:
        here: the files of Trino.
        places: the endpoints.
        directory: for configuration, data and log; created.
        threads: see :func:`configuration`.
        quick: start faster, at lower performance.

    Raises:
        TransientStoreError: it did not start.
    """
    etc, data = directory / "etc", directory / "data"
    (etc / "catalog").mkdir(parents=True, exist_ok=True)
    data.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    written = configuration(places, port, threads)
    for name, text in written.items():
        (etc / name).write_text(text, "utf-8")
    command = [str(here.java), *_JAVA, *(_QUICK if quick else ())]
    command += [f"-Dconfig={etc}/config.properties", f"-Dlog.levels-file={etc}/log.properties"]
    command += [f"-Dnode.data-dir={data}", f"-Dplugin.dir={here.plugins}"]
    command += [f"-Dcatalog.config-dir={etc}/catalog", *_properties(written["node.properties"])]
    command += ["-cp", f"{here.home}/lib/*", "io.trino.server.TrinoServer"]
    log = directory / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SUPERVISED, "sh", *command],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            # A terminal's interrupt must reach the clients first.
            start_new_session=True,
        )
        try:
            trino = Trino(f"http://127.0.0.1:{port}")
            _await(process, trino, log)
            yield trino
        finally:
            _end(process)


def _await(process: subprocess.Popen[bytes], trino: Trino, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while not trino.is_ready():
        if process.poll() is not None or time.monotonic() > end:
            lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line]
            errors = [line for line in lines if "ERROR" in line or "Error" in line] or lines
            raise TransientStoreError(f"Trino did not start: {' '.join(errors[:3])[:300]}")
        time.sleep(0.5)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        # The shell leads the process group that includes the server.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(properties: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _properties(text: str) -> list[str]:
    return [f"-D{line}" for line in text.splitlines()]
