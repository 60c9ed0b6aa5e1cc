"""A maintenance run whose processes may be killed: real handlers, the real job, a table of text.

The steps of the state machine, with Retry and Catch, run in this process. The table is a Delta
table whose data files are lines of text, so its rows can be read without an engine. The order of
the work on it is the Spark job's own; only Spark's work on files is replaced.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from compactor.errors import AlreadyExists, TableConflict, TransientStoreError
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables.handlers import (
    end_table,
    list_tables,
    plan_table,
    report_tables,
    runtime,
)
from compactor_tables.lease import Leases
from compactor_tables.maintenance_job import Maintenance
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt, write_receipt
from compactor_tables.orders import Order, PartitionOrder, read_order
from compactor_tables.table_engine import Rewritten, RowSums, StepDone
from tests.support.maintained_tables import DeltaLines, added
from tests.support.memory_hooks import Call, Crashed
from tests.support.memory_store import ManualClock, MemoryStore
from tests.unit.test_handlers import Context

BUCKET, PREFIX = "lake", "gold/orders/"
TABLE = parse_table(f"delta:s3://{BUCKET}/{PREFIX}")
STATE = parse_location(f"s3://{BUCKET}/state/")
NOW, DAY = 1_700_000_000.0, 86_400.0
DAYS, FILES = ("a", "b"), 5
#: Requests that change something; a kill between two of these has the same effect anywhere.
WRITES = frozenset({"put", "create", "replace", "delete_source"})


class Interrupted(Exception):
    """The error that Step Functions catches when a job's driver died."""


class TextTable:
    """Implements :class:`compactor_tables.table_engine.Tables` as far as the orders need it."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self._made = DeltaLines(store, PREFIX, ["day"])

    # What others do.

    def append(self, day: str, rows: list[str]) -> None:
        """Commit one small file, as another writer."""
        version = int(self.version()) + 1
        path = f"day={day}/{version}.txt"
        body = "".join(f"{row}\n" for row in rows).encode()
        self.store.seed(BUCKET, PREFIX + path, body, last_modified=self.clock.now())
        line = json.dumps(_added(path, day, len(body)))
        self.store.seed(BUCKET, _entry(version), line.encode(), last_modified=self.clock.now())

    # What tests inspect.

    def files(self, version: str = "") -> dict[str, dict[str, Any]]:
        """Return path -> action of each file of a version, by default the newest."""
        found: dict[str, dict[str, Any]] = {}
        for _, actions in self.entries(version):
            for one in actions:
                if "add" in one:
                    found[one["add"]["path"]] = one["add"]
                if "remove" in one:
                    del found[one["remove"]["path"]]
        return found

    def rows(self, version: str = "") -> Counter[str]:
        """Return all rows of a version; the files that it names must exist."""
        return Counter(row for path in self.files(version) for row in self._lines(path))

    def entries(self, version: str = "") -> list[tuple[int, list[dict[str, Any]]]]:
        """Return the versions with their actions."""
        log = self.store.contents(BUCKET, f"{PREFIX}_delta_log/")
        last = int(version) if version else len(log) - 1
        return [
            (number, [json.loads(line) for line in log[_entry(number)].splitlines()])
            for number in range(last + 1)
        ]

    @property
    def replaced(self) -> list[tuple[str, str]]:
        """Return run and path of each file that a rewrite removed."""
        return [
            (run, one["remove"]["path"])
            for _, actions in self.entries()
            for run in (_of_run(actions),)
            if run
            for one in actions
            if "remove" in one
        ]

    def _lines(self, path: str) -> list[str]:
        return self.store.contents(BUCKET, PREFIX + path)[PREFIX + path].decode().splitlines()

    # What the job calls.

    def require_rows(self) -> None:
        return

    def version(self) -> str:
        return f"{len(self.store.contents(BUCKET, f'{PREFIX}_delta_log/')) - 1}"

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        return "" if len(self._of(partition)) >= order.min_files else "too few files"

    def done(self, what: str, order: Order) -> Rewritten | None:
        for number, actions in self.entries():
            tags = _tags(actions)
            if tags.get("what") == what and tags.get("run") == order.run_id:
                return self._told(number, actions)
        return None

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        old, number = self._of(partition), int(self.version()) + 1
        day = partition.where[0].value or ""
        body = "".join(f"{row}\n" for path in old for row in self._lines(path)).encode()
        path = f"day={day}/{order.run_id}-{number}.txt"
        self.store.put(BUCKET, PREFIX + path, body)
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"run": order.run_id, "what": what}},
            _added(path, day, len(body)),
            *(
                {
                    "remove": {
                        "path": one,
                        "dataChange": False,
                        "deletionTimestamp": int(self.clock.now() * 1_000),
                        "partitionValues": {"day": day},
                        "size": old[one]["size"],
                    }
                }
                for one in old
            ),
        ]
        actions[1]["add"]["dataChange"] = False
        lines = "\n".join(map(json.dumps, actions)).encode()
        try:
            self.store.create(BUCKET, _entry(number), lines)
        except AlreadyExists as error:
            raise TableConflict(f"version {number} is somebody else's") from error
        return self._told(number, actions)

    def _told(self, number: int, actions: list[dict[str, Any]]) -> Rewritten:
        gone = [one["remove"] for one in actions if "remove" in one]
        came = [one["add"] for one in actions if "add" in one]
        return Rewritten(
            f"{number - 1}",
            f"{number}",
            len(gone),
            sum(one["size"] for one in gone),
            len(came),
            sum(one["size"] for one in came),
        )

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> tuple[RowSums, RowSums]:
        before, after = rewritten.before, rewritten.after
        return self.rows_at(partition, before), self.rows_at(partition, after)

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        rows = sorted(row for path in self._of(partition, version) for row in self._lines(path))
        return RowSums(len(rows), hash(tuple(rows)), 0)

    def take_back(self, before: str, after: str, what: str) -> bool:
        raise AssertionError("rows of a rewrite differ")

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        raise AssertionError("there are no deletes")

    def manifests(self, order: Order) -> StepDone:
        raise AssertionError("Delta has none")

    def checkpoint(self, order: Order) -> StepDone:
        return StepDone("no checkpoint here")

    def expire(self, order: Order, now: float) -> StepDone:
        return StepDone("with the files")

    def orphans(self, order: Order, now: float) -> StepDone:
        """Delete like VACUUM: files removed from the log long ago, and files it never named."""
        kept = {
            one["remove"]["path"]
            for _, actions in self.entries()
            for one in actions
            if "remove" in one
            and one["remove"]["deletionTimestamp"] / 1_000 > now - order.keep_seconds
        }
        kept |= self.files().keys()
        gone = [
            one
            for page in self.store.list_objects(BUCKET, f"{PREFIX}day=")
            for one in page
            if one.key.removeprefix(PREFIX) not in kept
            and one.last_modified < now - order.orphan_seconds
        ]
        self.store.delete_sources(gone)
        return StepDone(f"{len(gone)} files deleted", deleted_files=len(gone))

    def _of(self, partition: PartitionOrder, version: str = "") -> dict[str, dict[str, Any]]:
        day = partition.where[0].value
        found = self.files(version).items()
        return {path: one for path, one in found if one["partitionValues"]["day"] == day}


def _entry(version: int) -> str:
    return f"{PREFIX}_delta_log/{version:020}.json"


def _added(path: str, day: str, size: int) -> dict[str, Any]:
    return added(path, size, partitionValues={"day": day})


def _of_run(actions: list[dict[str, Any]]) -> str:
    return _tags(actions).get("run", "")


def _tags(actions: list[dict[str, Any]]) -> dict[str, str]:
    """Return the commit info of one of our commits."""
    found: list[dict[str, str]] = [one["commitInfo"] for one in actions if "commitInfo" in one]
    return found[0] if found else {}


@dataclass
class World:
    """A table, the state of its runs, and a simulation of the state machine.

    Attributes:
        driver: runs the job; tests replace it to let the driver die.
        errors: errors of the handlers that Retry handled.
        prefixes: prefixes of the keys at whose writes a test may kill.
    """

    monkeypatch: pytest.MonkeyPatch
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW))
    driver: Callable[[Callable[[], None]], None] = lambda job: job()
    errors: list[str] = field(default_factory=list)
    prefixes: tuple[str, ...] = ("state/", PREFIX)
    address: str = TABLE.text

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.store.add_bucket(BUCKET)
        self.table = TextTable(self.store, self.clock)
        for day in DAYS:
            for number in range(FILES):
                self.table.append(day, [f"{day}{number}", "the same in all"])
        self.rows = self.table.rows()
        self.clock.advance(DAY)
        self.patch()

    def patch(self) -> None:
        """Make the handlers use this world's store and clock."""
        for module in (list_tables, report_tables, runtime):
            self.monkeypatch.setattr(module, "table_store", lambda _: self.store)
        self.monkeypatch.setattr(runtime, "CLOCK", self.clock)

    @property
    def leases(self) -> Leases:
        return Leases(self.store, STATE, self.clock)

    def receipt(self, run_id: str) -> MaintenanceReceipt | None:
        return read_receipt(STATE, run_id, self.address, self.store)

    def run(self, run_id: str) -> dict[str, Any]:
        """Do a whole run; return a summary of its report."""
        rule = {"match": ["*"], "closed_after_seconds": 0}
        given = {"s3_state_uri": STATE.uri, "tables": [self.address], "policies": [rule]}
        listed = self._call(list_tables, {"run_id": run_id, "input": given})
        body = self.store.get(listed["tables"]["bucket"], listed["tables"]["key"])
        ended = [self._table(item) for item in json.loads(body)]
        asked = {"run_id": run_id, "request": listed["request"], "started_at": "", "failure": None}
        report = self._call(report_tables, asked)
        return {**report, "line": ended[0]["line"]}

    def _table(self, item: dict[str, Any]) -> dict[str, Any]:
        plan, failure = None, None
        try:
            plan = self._call(plan_table, item)
            if plan["engine"] != "none":
                self._engine(item, plan)
        except Exception as error:
            cause = json.dumps({"errorMessage": str(error)})
            failure = {"Error": type(error).__name__, "Cause": cause}
        return self._call(end_table, {**item, "plan": plan, "failure": failure})

    def _call(self, module: ModuleType, event: Mapping[str, Any]) -> dict[str, Any]:
        for _ in range(8):
            try:
                answer: dict[str, Any] = module.handler(json.loads(json.dumps(event)), Context())
            except TransientStoreError as error:
                self.errors.append(f"{module.__name__}: {error}")
            else:
                return answer
        raise AssertionError("Retry came to its end")

    def _engine(self, item: Mapping[str, Any], plan: dict[str, Any]) -> None:
        self.driver(lambda: self._job(plan["order"]))

    def _job(self, where: Mapping[str, str]) -> None:
        """Run the job like ``maintain_tables``."""
        order = read_order(where["bucket"], where["key"], self.store)
        fresh = MaintenanceReceipt(table=order.table, run_id=order.run_id, engine="spark")
        receipt = Maintenance(
            order,
            self.table,
            self.receipt(order.run_id) or fresh,
            save=lambda one: write_receipt(one, STATE, self.store),
            say=lambda _: None,
            now=self.clock.now,
            require_ours=lambda: self.leases.require_no_other(TABLE, order.run_id),
        ).run()
        if receipt.status == "failed":
            raise Interrupted(f"exit code 1: {receipt.cause}")

    # Kills.

    def _is_ours(self, call: Call) -> bool:
        """Return whether this is a write by our own processes, not by a service."""
        return call.name in WRITES and call.key.startswith(self.prefixes)

    def writes(self, act: Callable[[], object]) -> int:
        """Return the number of our writes during an action."""
        seen: list[Call] = []
        self.store.hooks.after.append(seen.append)
        act()
        self.store.hooks.clear()
        return sum(map(self._is_ours, seen))

    def kill_after(self, number: int) -> None:
        """Kill everything right after this write, counted from 1; 0 kills before the first."""
        seen, dead = 0, number == 0

        def count(call: Call) -> None:
            nonlocal seen, dead
            seen += self._is_ours(call)
            if seen == number and not dead:
                dead = True
                raise Crashed(f"after {call}")

        def stay_dead(call: Call) -> None:
            if dead:
                raise Crashed(f"dead at {call}")

        self.store.hooks.after.append(count)
        self.store.hooks.before.append(stay_dead)

    def kill_before(self, number: int) -> None:
        """Kill everything right before this write, after all that services do until then."""
        seen = 0

        def count(call: Call) -> None:
            nonlocal seen
            seen += self._is_ours(call)
            if seen >= number:
                raise Crashed(f"before {call}")

        self.store.hooks.before.append(count)

    def fail_at(self, number: int, *, stored: bool) -> None:
        """Answer one write, counted from 1, with an error, whether or not it was stored."""
        seen = 0

        def refuse(call: Call) -> None:
            nonlocal seen
            seen += self._is_ours(call)
            if self._is_ours(call) and seen == number:
                seen += 1
                raise TransientStoreError(f"{call.name} {call.key}: 500 InternalError")

        hooks = self.store.hooks
        (hooks.after if stored else hooks.before).append(refuse)
