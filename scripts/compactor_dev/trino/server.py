"""Trino's server while it runs, and what asks it.

Tables are those of a Glue Data Catalog, and objects those of an S3, each at an endpoint of its own:
Athena, which is made of Trino, reads the same tables the same way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from compactor.errors import TransientStoreError
from compactor_dev.ports import free_ports
from compactor_dev.trino.build import VERSION, TrinoHere

_REGION = "us-east-1"
_START_SECONDS = 300.0
_END_SECONDS = 20.0
_QUERY_SECONDS = 900.0
# It answers within a second, with a page that is empty where it has no rows yet.
_PAGE_SECONDS = 60.0
# Before a worker is there.
_NO_WORKER, _AGAIN_SECONDS = "NO_NODES_AVAILABLE", 0.5
_CATALOG = "glue"
_MEMORY_MB = 3_072
# The server ends when its standard input closes, and so never outlives its caller.
_SUPERVISED = (
    'exec 3<&0; "$@" 3<&- & server=$!; { cat <&3 >/dev/null; kill $server; } & wait $server'
)
_HEADERS = {"X-Trino-User": "compactor", "X-Trino-Catalog": _CATALOG, "X-Trino-Time-Zone": "UTC"}
# As Trino's documentation has them.
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
# Not compiled again to be fast in the long run: it starts in two thirds of the time.
_QUICK = ("-XX:TieredStopAtLevel=1",)


class QueryFailed(TransientStoreError):
    """Trino gave no answer to a statement; says why, in its words where it has some."""


class _NoWorker(QueryFailed):
    """No worker was there: nothing of the statement was carried out."""


@dataclass(frozen=True, slots=True)
class Places:
    """What a server reads.

    Attributes:
        s3_url: endpoint of the S3 with the objects.
        glue_url: endpoint of the Glue with the tables.
    """

    s3_url: str
    glue_url: str


class Trino:
    """A running server.

    Args:
        url: where it listens.
    """

    version = VERSION

    def __init__(self, url: str) -> None:
        self._url = url
        # No proxy of the environment stands before it.
        self._http = urllib3.PoolManager(retries=False)

    def ask(self, statement: str) -> list[list[Any]]:
        """The rows of a statement.

        It is sent again where no worker was there for it: a server that has just started knows
        some seconds later which catalogs it serves itself.

        Raises:
            QueryFailed: it was refused or took too long, or the server is gone.
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
        """It can be asked."""
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
    """The server's files, by their paths below its configuration.

    Args:
        places: what it reads.
        port: where it listens, on the loopback interface.
        threads: that read and compute; 0 for as many as it takes by itself, two a processor.
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
        # Athena has it, and a partition of Hive has levels below it.
        "hive.recursive-directories": "true",
        # So has it this, and partitions that are in no catalog.
        "hive.partition-projection-enabled": "true",
        # Moto has no column statistics, for which Trino asks again and again.
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
    """Trino for the length of the block; it starts in half a minute or so.

    Args:
        here: what is started.
        places: what it reads.
        directory: for its configuration, its data and its log; is made.
        threads: see :func:`configuration`.
        quick: it is not for measuring, and starts sooner.

    Raises:
        TransientStoreError: it did not start.
    """
    etc, data = directory / "etc", directory / "data"
    (etc / "catalog").mkdir(parents=True, exist_ok=True)
    data.mkdir(exist_ok=True)
    (port,) = free_ports(1)
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
            # A terminal's interrupt must reach those who ask it first.
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
        # The shell is the leader of the group that it and the server are.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(properties: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _properties(text: str) -> list[str]:
    return [f"-D{line}" for line in text.splitlines()]
