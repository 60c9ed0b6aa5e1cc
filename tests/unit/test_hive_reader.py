"""A Hive metastore that is not there, is something else, or does not answer; and its documents."""

from __future__ import annotations

import importlib.util
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from compactor.catalogs.readers import open_readers
from compactor.errors import CompactorError, InvalidInput, TransientStoreError
from compactor.settings.readers import parse_reader_table
from compactor.settings.settings import Settings

TABLE = "hive:thrift://127.0.0.1:9083#lake.logs"
INPUT = {
    "s3_source_uri": "s3://source/logs/",
    "s3_destination_uri": "s3://lake/compacted/",
    "date_format": "%Y/%m/%d",
    "start": "2026-01-02",
}


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        "hive:thrift://metastore.example.com:1#a.b",
        "hive:thrift://Meta-1:65535#a_1.b_2",
        "hive:thrift://[::1]:9083#lake.logs",
    ],
)
def test_an_address_of_a_metastore_is_read_and_told_as_it_is(table: str) -> None:
    assert parse_reader_table(table).text == table


@pytest.mark.parametrize(
    "table",
    [
        "hive:",
        "hive:lake.logs",
        "hive:thrift://host:9083",
        "hive:thrift://host:9083#logs",
        "hive:thrift://host:9083#a.b.c",
        "hive:thrift://host:9083#Lake.logs",
        "hive:thrift://host:9083#la-ke.logs",
        "hive:thrift://host:9083/x#lake.logs",
        "hive:thrift://host:0#lake.logs",
        "hive:thrift://host:65536#lake.logs",
        "hive:thrift://host#lake.logs",
        "hive:thrift://one:9083,thrift://two:9083#lake.logs",
        "hive:thrift://a..b:9083#lake.logs",
        f"hive:thrift://{'a' * 64}:9083#lake.logs",
        "hive:thrift://[1.2]:9083#lake.logs",
        "hive:http://host:9083#lake.logs",
        "hive:thrift://user@host:9083#lake.logs",
        "hive:thrift://host:9083#lake.logs\n",
        "Hive:thrift://host:9083#lake.logs",
    ],
)
def test_a_wrong_address_is_told_with_what_is_accepted(table: str) -> None:
    given = {**INPUT, "reader_table": table}
    with pytest.raises(InvalidInput, match=r"hive:thrift://HOST:PORT#DATABASE\.TABLE") as caught:
        Settings.from_input(given)
    assert caught.value.field == "reader_table"


def test_columns_are_taken_from_the_catalog_of_the_table_alone() -> None:
    given = {**INPUT, "reader_table": TABLE}
    same = "hive:thrift://127.0.0.1:9083#other.logs"
    assert Settings.from_input({**given, "reader_columns": same}).reader_columns == same
    for other in ("glue:lake.logs", "hive:thrift://127.0.0.1:9084#lake.logs"):
        with pytest.raises(InvalidInput, match=r"reader_columns: .* in the catalog of hive:thrift"):
            Settings.from_input({**given, "reader_columns": other})


def test_without_its_extra_a_table_in_hive_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "compactor.catalogs.readers.find_spec",
        lambda name: None if name == "thrift" else find(name),
    )
    open_readers.cache_clear()
    with pytest.raises(InvalidInput, match=r"pip install 's3-compactor\[hive\]'") as caught:
        open_readers(TABLE)
    assert "\n" not in str(caught.value)


class Answering:
    """Answers each connection with the same bytes, or with nothing at all."""

    def __init__(self, answer: bytes | None) -> None:
        self.connections = 0
        self._answer = answer
        self._held: list[socket.socket] = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def table(self) -> str:
        return f"hive:thrift://127.0.0.1:{self.listening.getsockname()[1]}#lake.logs"

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            if self._answer is None:
                self._held.append(one)
                continue
            one.recv(1 << 16)
            one.sendall(self._answer)
            one.close()


def asked(table: str, waits: list[float], **given: Any) -> CompactorError:
    """What is raised by asking for the table there."""
    pytest.importorskip("thrift", reason="the extra hive is not installed")
    from compactor.catalogs.hive_client import Metastore
    from compactor.catalogs.hive_reader import HiveReader

    address = parse_reader_table(table)
    reader = HiveReader(address, Metastore(address, wait=waits.append, **given))
    with pytest.raises(CompactorError) as caught:
        reader.table()
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_metastore_that_is_not_there_is_asked_three_times_and_then_for_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    waits: list[float] = []
    with caplog.at_level(logging.DEBUG):
        error = asked(f"hive:thrift://127.0.0.1:{port}#lake.logs", waits)
    assert isinstance(error, TransientStoreError)
    assert "Could not connect" in str(error)
    assert waits == [0.5, 2.0]
    assert not [one for one in caplog.records if one.name.startswith("thrift")]


def test_a_host_without_an_address_is_for_later() -> None:
    error = asked("hive:thrift://no-such-host.invalid:9083#lake.logs", [])
    assert isinstance(error, TransientStoreError)
    assert "no-such-host.invalid" in str(error)


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[Answering]:
    made = Answering(request.param)
    yield made
    made.listening.close()


@pytest.mark.parametrize("answering", [None, b""], indirect=True)
def test_a_metastore_that_says_nothing_is_asked_three_times(answering: Answering) -> None:
    error = asked(answering.table, [], answer_seconds=0.2)
    assert isinstance(error, TransientStoreError)
    assert answering.connections == 3


@pytest.mark.parametrize(
    "answering",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x16", b"\xff" * 64],
    indirect=True,
)
def test_what_is_no_metastore_is_told_at_once(answering: Answering) -> None:
    error = asked(answering.table, [])
    assert isinstance(error, InvalidInput)
    assert "Thrift port" in str(error)
    assert answering.connections == 1


def test_statistics_of_what_was_shown_before_are_not_kept() -> None:
    pytest.importorskip("thrift", reason="the extra hive is not installed")
    from compactor.catalogs.hive_documents import added
    from compactor.readers.port import CatalogChange

    descriptor = {
        "Columns": [{"Name": "id", "Type": "bigint"}],
        "Location": "s3://lake/x/",
        "InputFormat": "in",
        "OutputFormat": "out",
        "SerdeInfo": {"SerializationLibrary": "serde", "Parameters": {}},
    }
    counted = ("COLUMN_STATS_ACCURATE", "numRows", "totalSize", "spark.sql.statistics.totalSize")
    parameters = {**dict.fromkeys(counted, "7"), "compactor.switch": "a"}
    made = added(CatalogChange(("1",), descriptor, parameters), ("lake", "logs"))
    assert made.parameters == {"compactor.switch": "a"}


@pytest.mark.parametrize(
    ("kind", "says", "error", "words"),
    [
        ("MetaException", "Unable to acquire a connection", TransientStoreError, "get partitions"),
        ("InvalidObjectException", "of a later version", TransientStoreError, "later version"),
        ("MetaException", "AccessControlException: no", InvalidInput, "permission: "),
        ("MetaException", 'No FileSystem for scheme "s3"', InvalidInput, r"fs\.s3\.impl"),
        ("TApplicationException", "Invalid method name", InvalidInput, "2.3 or later"),
    ],
)
def test_every_refusal_is_an_error_of_ours_in_one_line(
    monkeypatch: pytest.MonkeyPatch, kind: str, says: str, error: type[Exception], words: str
) -> None:
    pytest.importorskip("thrift", reason="the extra hive is not installed")
    from hive_metastore import ttypes
    from thrift.Thrift import TApplicationException

    from compactor.catalogs.hive_reader import HiveReader

    def refuse(*_: Any) -> None:
        if kind == "TApplicationException":
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, says)
        raise getattr(ttypes, kind)(f"{says}\nat Some.java:7")

    reader = HiveReader(parse_reader_table(TABLE))
    monkeypatch.setattr(reader, "table", lambda: {"PartitionKeys": [{"Name": "day"}]})
    monkeypatch.setattr("compactor.catalogs.hive_client.Metastore._answer", refuse)
    with pytest.raises(error, match=words) as caught:
        reader.entries([("1",)])
    assert "\n" not in str(caught.value)
