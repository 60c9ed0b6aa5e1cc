"""An Iceberg REST catalog in this process: the protocol on top of pyiceberg's SQLite catalog.

    with rest_catalog(directory) as catalog: ...

There is no suitable server in a package. pyiceberg itself checks requirements and applies updates,
with compare-and-swap as in a catalog.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, Table

_STATUS: Mapping[type[Exception], HTTPStatus] = {
    CommitFailedException: HTTPStatus.CONFLICT,
    TableAlreadyExistsError: HTTPStatus.CONFLICT,
    NoSuchNamespaceError: HTTPStatus.NOT_FOUND,
    NoSuchTableError: HTTPStatus.NOT_FOUND,
}
_NAMESPACE = re.compile(r"/v1/namespaces/([^/]+)")
_TABLES = re.compile(r"/v1/namespaces/([^/]+)/tables")
_TABLE = re.compile(r"/v1/namespaces/([^/]+)/tables/([^/]+)")
# The separator of a namespace's levels.
_LEVELS = "\x1f"


class _Catalog:
    """The catalog's side of the protocol.

    Attributes:
        commits: the types of requirements of each commit.
    """

    def __init__(self, directory: Path) -> None:
        self.commits: list[set[str]] = []
        place = {"uri": f"sqlite:///{directory}/rest.db", "warehouse": directory.as_uri()}
        self._tables = SqlCatalog("rest", **place)
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: bytes) -> tuple[HTTPStatus, object]:
        with self._lock:
            try:
                return self._answer(method, path, body)
            except Exception as error:
                status = _STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR)
                about = {"message": str(error), "type": type(error).__name__, "code": status}
                return status, {"error": about}

    def _answer(self, method: str, path: str, body: bytes) -> tuple[HTTPStatus, object]:
        if path == "/v1/config":
            return HTTPStatus.OK, {"defaults": {}, "overrides": {}}
        if path == "/v1/namespaces":
            self._tables.create_namespace(tuple(json.loads(body)["namespace"]))
            return HTTPStatus.OK, json.loads(body)
        for pattern, does in (
            (_NAMESPACE, self._namespace),
            (_TABLES, self._create),
            (_TABLE, self._commit if method == "POST" else self._load),
        ):
            found = pattern.fullmatch(path)
            if found:
                names = [part for one in found.groups() for part in unquote(one).split(_LEVELS)]
                return HTTPStatus.OK, does(tuple(names), body)
        # Reports of metrics are ignored.
        return HTTPStatus.NO_CONTENT, None

    def _namespace(self, name: tuple[str, ...], _: bytes) -> object:
        properties = self._tables.load_namespace_properties(name)
        return {"namespace": list(name), "properties": dict(properties)}

    def _load(self, name: tuple[str, ...], _: bytes) -> object:
        return _shown(self._tables.load_table(name))

    def _create(self, namespace: tuple[str, ...], body: bytes) -> object:
        asked = CreateTableRequest.model_validate_json(body)
        given: dict[str, Any] = {
            "location": asked.location,
            "properties": asked.properties,
            **({"partition_spec": asked.partition_spec} if asked.partition_spec else {}),
            **({"sort_order": asked.write_order} if asked.write_order else {}),
        }
        name = (*namespace, asked.name)
        if not asked.stage_create:
            return _shown(self._tables.create_table(name, asked.table_schema, **given))
        if self._tables.table_exists(name):
            raise TableAlreadyExistsError(f"{name} is there already")
        staged = self._tables._create_staged_table(name, asked.table_schema, **given)
        return {**_shown(staged), "metadata-location": None}

    def _commit(self, name: tuple[str, ...], body: bytes) -> object:
        # Java's client omits what is in the path.
        said = {"namespace": name[:-1], "name": name[-1]}
        asked = CommitTableRequest.model_validate({"identifier": said, **json.loads(body)})
        self.commits.append({one.type for one in asked.requirements})
        # Only the name is passed: a table that its first commit creates does not exist yet.
        table: Any = _Named(name)
        done = self._tables.commit_table(table, asked.requirements, asked.updates)
        return {
            "metadata-location": done.metadata_location,
            "metadata": json.loads(done.metadata.model_dump_json()),
        }


class _Named:
    """The only part of a table that a catalog needs for a commit."""

    def __init__(self, name: tuple[str, ...]) -> None:
        self._name = name

    def name(self) -> tuple[str, ...]:
        return self._name


def _shown(table: Table) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


@dataclass(frozen=True, slots=True)
class RestCatalog:
    """A running catalog.

    Attributes:
        uri: URI of the service.
        commits: the types of requirements of each commit.
    """

    uri: str
    commits: Sequence[set[str]]


@contextmanager
def rest_catalog(directory: Path) -> Iterator[RestCatalog]:
    """Serve a new catalog with its tables below a directory; it ends with the context."""
    catalog = _Catalog(directory)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = catalog.answer(self.command, self.path.partition("?")[0], body)
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_HEAD = handle_any  # noqa: N815 - http's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield RestCatalog(f"http://127.0.0.1:{server.server_port}", catalog.commits)
    finally:
        server.shutdown()
        server.server_close()
