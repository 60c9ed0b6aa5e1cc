"""Trino as it is fetched, set up and asked; tests/e2e/test_readers_trino.py has the real one."""

from __future__ import annotations

import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from compactor.errors import InvalidInput
from compactor_dev.trino import build
from compactor_dev.trino.server import Places, QueryFailed, Trino, configuration

PLACES = Places("http://127.0.0.1:1", "http://127.0.0.1:2")


def test_other_bytes_than_the_pinned_ones_are_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bring(command: Sequence[str]) -> None:
        (directory,) = [word for word in command if word.startswith("-DoutputDirectory=")]
        name = f"trino-server-core-{build.VERSION}.tar.gz"
        Path(directory.partition("=")[2], name).write_bytes(b"others")

    monkeypatch.setattr(build, "_PLACE", tmp_path)
    monkeypatch.setattr(build, "_run", bring)
    with pytest.raises(InvalidInput, match=r"trino-server-core:476.*expected the SHA-256 0f388f"):
        build.fetch()
    assert build.find() is None
    assert list(tmp_path.iterdir()) == []


def test_every_archive_of_the_connector_is_unpacked_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, hive = f"trino-server-core-{build.VERSION}", f"trino-hive-{build.VERSION}"
    server, connector = tmp_path / "core.tar.gz", tmp_path / "hive.zip"
    names = {"trino-hive.jar", "io.opente...mentation_aws-sdk.jar"}
    with tarfile.open(server, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(f"{core}/README.txt"))
    with zipfile.ZipFile(connector, "w") as archive:
        for name in names:
            archive.writestr(f"{hive}/{name}", b"classes")
    archives = iter([server, connector])
    monkeypatch.setattr(build, "_fetched", lambda *_: next(archives))
    made = tmp_path / "made"
    made.mkdir()
    build._unpack(tmp_path, made)
    assert {one.name for one in (made / core / "plugin" / "hive").iterdir()} == names


def test_it_listens_to_no_other_client_and_takes_the_given_number_of_threads() -> None:
    own, many = configuration(PLACES, 8080, 0), configuration(PLACES, 8080, 32)
    assert "node.bind-ip=127.0.0.1\n" in own["node.properties"]
    assert "task.max-worker-threads" not in own["config.properties"]
    assert "task.max-worker-threads=32\n" in many["config.properties"]
    glue = own["catalog/glue.properties"]
    assert "s3.endpoint=http://127.0.0.1:1\n" in glue
    assert "hive.metastore.glue.endpoint-url=http://127.0.0.1:2\n" in glue


@pytest.fixture
def pages() -> Iterator[tuple[list[dict[str, object]], str]]:
    """A server that answers with these pages, each with the next one's address."""
    told: list[dict[str, object]] = []

    class Server(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            page = told.pop(0)
            if told:
                page["nextUri"] = f"{url}/next"
            body = json.dumps(page).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - as the server calls them

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield told, url
    server.shutdown()
    thread.join()
    server.server_close()


def test_rows_of_all_pages_are_one_answer(pages: tuple[list[dict[str, object]], str]) -> None:
    told, url = pages
    told += [{}, {"data": [[1], [2]]}, {}, {"data": [[3]]}, {}]
    assert Trino(url).ask("SELECT 1") == [[1], [2], [3]]


def test_a_server_that_is_gone_is_reported_in_one_line() -> None:
    with pytest.raises(QueryFailed, match=r"^Trino: .*refused"):
        Trino("http://127.0.0.1:1").ask("SELECT 1")


def test_what_fails_after_the_first_rows_is_no_answer(
    pages: tuple[list[dict[str, object]], str],
) -> None:
    told, url = pages
    told += [{"data": [[1]]}, {"error": {"message": "an object is gone"}}]
    with pytest.raises(QueryFailed, match="an object is gone"):
        Trino(url).ask("SELECT 1")


def test_a_statement_for_which_no_worker_is_there_yet_is_sent_again(
    pages: tuple[list[dict[str, object]], str],
) -> None:
    told, url = pages
    told += [{"error": {"message": "No nodes available", "errorName": "NO_NODES_AVAILABLE"}}]
    told += [{"data": [[7]]}]
    assert Trino(url).ask("SELECT 7") == [[7]]
