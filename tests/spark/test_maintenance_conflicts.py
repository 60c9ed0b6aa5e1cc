"""A rewrite and a user's DELETE or MERGE at the same time: who fails, and that no row is lost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from compactor.s3.store import make_client
from compactor.settings.tables import parse_table
from compactor.sizes import MIB
from compactor_local.embedded import EmbeddedS3
from compactor_spark import opening
from compactor_spark.maintain.delta import DeltaTable
from compactor_spark.maintain.iceberg import IcebergTable
from compactor_spark.opening import table_name, table_session
from compactor_tables.maintenance_job import Maintenance
from compactor_tables.maintenance_receipts import MaintenanceReceipt
from compactor_tables.orders import REWRITE, Order
from compactor_tables.table_engine import Tables
from tests.spark.gate import Gate, Request
from tests.spark.maintenance_world import day
from tests.support.embedded import find_embedded
from tests.support.table_engines import small_session

pytestmark = pytest.mark.slow

_FILES = 4
_WAIT_SECONDS = 240
_names = itertools.count(1)


@dataclass(slots=True)
class Held:
    """The first PUT of a file of the table's data: it waits at the gate until it may go on."""

    gate: Gate
    _arrived: threading.Event = field(default_factory=threading.Event, init=False)
    _goes_on: threading.Event = field(default_factory=threading.Event, init=False)

    def while_it_waits(self, work: Callable[[], object], then: Callable[[], object]) -> None:
        """Begin ``work``, and do ``then`` while its first file waits."""
        self.gate.rules.append(self._hold)
        working = threading.Thread(target=work)
        working.start()
        try:
            assert self._arrived.wait(_WAIT_SECONDS)
            then()
        finally:
            self._goes_on.set()
            working.join()
            self.gate.rules.remove(self._hold)

    def _hold(self, request: Request) -> None:
        of_data = request.path.endswith((".parquet", ".bin")) and "_delta_log" not in request.path
        if request.method == "PUT" and of_data and not self._arrived.is_set():
            self._arrived.set()
            self._goes_on.wait(_WAIT_SECONDS)


@dataclass(slots=True)
class Shared:
    """A table on S3, each of whose requests passes the gate; one partition of small files.

    Attributes:
        failures: of a user's statements.
    """

    ours: SparkSession
    users: SparkSession
    address: str
    failures: list[str] = field(default_factory=list)

    @property
    def is_delta(self) -> bool:
        return self.address.startswith("delta:")

    @property
    def sql(self) -> str:
        name = table_name(parse_table(self.address))
        return f"delta.`{name}`" if self.is_delta else name

    def make(self) -> None:
        said = "'delta.enableDeletionVectors' = 'true'"
        if not self.is_delta:
            self.users.sql("CREATE NAMESPACE compactor.lake")
            said = (
                "'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read',"
                " 'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true'"
            )
        self.users.sql(
            f"CREATE TABLE {self.sql} (id BIGINT, day STRING, v STRING)"
            f" USING {'delta' if self.is_delta else 'iceberg'} PARTITIONED BY (day)"
            f" TBLPROPERTIES ({said})"
        )

    def fill(self, first: int) -> None:
        """Files of two rows, from this key on."""
        rows = self.users.range(first, first + 2 * _FILES, 1, _FILES)
        frame = rows.selectExpr("id", "'a' AS day", "'old' AS v")
        if self.is_delta:
            frame.write.format("delta").mode("append").save(table_name(parse_table(self.address)))
        else:
            frame.writeTo(self.sql).append()

    def use(self, statement: str) -> None:
        """What a user does; a failure is noted."""
        try:
            self.users.sql(statement.format(table=self.sql))
        except (Py4JJavaError, PySparkException) as error:
            self.failures.append(str(error))

    def maintain(self, run_id: str) -> MaintenanceReceipt:
        order = Order(
            run_id=run_id, table=self.address, engine="spark", steps=(REWRITE,), min_files=2,
            partitions=(day("a"),), target_bytes=MIB,
        )  # fmt: skip
        kind: Callable[[SparkSession, str], Tables] = DeltaTable if self.is_delta else IcebergTable
        table = kind(self.ours, table_name(parse_table(self.address)))
        receipt = MaintenanceReceipt(table=self.address, run_id=run_id, engine="spark")
        return Maintenance(order, table, receipt, lambda _: None, lambda _: None).run()

    def rows(self) -> dict[int, str]:
        found = self.users.table(self.sql).select("id", "v").collect()
        told = {row.id: row.v for row in found}
        assert len(told) == len(found)
        return told


@pytest.fixture
def shared(
    s3: EmbeddedS3,
    proxy: Gate,
    tables: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Shared:
    find_embedded(s3, monkeypatch)
    monkeypatch.setattr(opening, "pinned_session", small_session)
    bucket = f"conflicts-{next(_names)}"
    s3.create_bucket(bucket)
    delta, iceberg = f"delta:s3://{bucket}/t/", f"sql:sqlite:///{tmp_path}/own.db#lake.t"
    address = {"delta": delta, "iceberg": iceberg}[request.param]

    def session() -> SparkSession:
        client = make_client(proxy.endpoint_url)
        warehouse = f"s3://{bucket}/warehouse"
        own = table_session(tables, parse_table(address), client, warehouse)
        # A file system is made once for a bucket.
        own.conf.set("fs.s3a.endpoint", proxy.endpoint_url)
        return own

    made = Shared(session(), session(), address)
    made.make()
    made.fill(0)
    return made


_DELETE = "DELETE FROM {table} WHERE id % 4 = 1"
_MERGE = (
    "MERGE INTO {table} t USING (SELECT explode(array(0, 5, 100, 105)) AS id) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = 'new'"
)


def _after(statement: str, rows: dict[int, str]) -> dict[int, str]:
    if statement == _DELETE:
        return {one: v for one, v in rows.items() if one % 4 != 1}
    return {one: "new" if one in {0, 5, 100, 105} else v for one, v in rows.items()}


@pytest.mark.parametrize(
    ("shared", "statement"),
    [("delta", _DELETE), ("iceberg", _DELETE), ("iceberg", _MERGE)],
    indirect=["shared"],
    ids=["delta-delete", "iceberg-delete", "iceberg-merge"],
)
def test_a_rewrite_gives_way_to_a_user_and_a_later_user_has_to_try_again(
    shared: Shared, proxy: Gate, statement: str
) -> None:
    before = shared.rows()
    told: list[MaintenanceReceipt] = []
    # A user's statement is begun and ended while ours writes its file.
    Held(proxy).while_it_waits(
        lambda: told.append(shared.maintain("run-1")), lambda: shared.use(statement)
    )
    expected = _after(statement, before)
    (one,) = told[0].partitions
    assert (one.status, shared.failures) == ("gave way", []), one
    assert told[0].status == "done"
    assert shared.rows() == expected
    print(shared.address, one.why)  # noqa: T201 - shown where the test fails
    # The other way round: ours is begun and ended while theirs writes its file.
    shared.fill(100)
    expected |= dict.fromkeys(range(100, 100 + 2 * _FILES), "old")
    Held(proxy).while_it_waits(
        lambda: shared.use(statement),
        lambda: told.append(shared.maintain("run-2")),
    )
    assert [one.status for one in told[1].partitions] == ["done"], told[1]
    (failure,) = shared.failures
    print(failure[:400])  # noqa: T201 - as above
    assert shared.rows() == expected
    shared.use(statement)
    assert shared.rows() == _after(statement, expected)
