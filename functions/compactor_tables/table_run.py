"""One table in a run of maintenance: its plan, its lease, and its end.

Between lease and end, an engine does what the plan orders. A plan is an object of JSON, because
Step Functions passes it on: ``run_id``, ``table``, ``engine``, ``reason``, ``rule``, ``order``
(``bucket``, ``key`` and ``uri``) and ``estimate``; and ``lease``, once that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from compactor.failures import failure_text
from compactor.ports import Clock, ObjectStore
from compactor.prices import Prices
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.aws.athena_queries import AthenaScans
from compactor_tables.due_tables import Due, decide_due
from compactor_tables.engine_choice import NONE
from compactor_tables.lease import LeaseHeld, Leases
from compactor_tables.maintenance_receipts import (
    DONE,
    FAILED,
    MaintenanceReceipt,
    read_receipt,
    write_receipt,
)
from compactor_tables.measures import TableMeasure
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.orders import Order, find_order, read_order, write_order
from compactor_tables.outcomes import Outcome, outcome_of, write_outcome
from compactor_tables.policies import Rule
from compactor_tables.request import MaintenanceRequest
from compactor_tables.table_planning import TablePlan, estimate_by, plan_table

_NOT_PLANNED: Mapping[str, Any] = {"engine": NONE, "reason": "it was not planned"}


@dataclass(frozen=True, slots=True)
class TableRun:
    """A table in a run.

    Attributes:
        run_id: of the run.
        table: its address.
        state: prefix of the run's documents.
        store: where they lie.
        clock: of this machine.
    """

    run_id: str
    table: TableAddress
    state: S3Uri
    store: ObjectStore
    clock: Clock

    @property
    def leases(self) -> Leases:
        """The leases of the run's state."""
        return Leases(self.store, self.state, self.clock)

    def plan(
        self, request: MaintenanceRequest, engines: Collection[str], prices: Prices
    ) -> tuple[dict[str, Any], TablePlan | None]:
        """Measure the table, and plan the work on it; return the plan, and what it was made from.

        The order is stored in any case; if its engine is ``none``, it has the reason. A run that is
        started again keeps its earlier order, because queries and commits are identified by it; the
        second result is None then.

        Args:
            request: the run's input.
            engines: that are available.
            prices: of the region.

        Raises:
            InvalidInput: there is no such table, or it may not be read.
            IntegrityError: its metadata contradicts itself.
            TransientStoreError: the table changed while it was read, or a service did not answer.
        """
        earlier = find_order(*places.order_key(self.state, self.run_id, self.table), self.store)
        if earlier is not None and earlier.engine != NONE:
            return self._summary(earlier, estimate_by(earlier, prices)), None
        now = self.clock.now()
        measure = measure_table(self.table, self.store, now)
        matched = request.policies.of(self.table.text)
        plan = plan_table(measure, matched, now, engines, prices=prices)
        if request.only_when_due and plan.engine != NONE:
            due = self._due(matched.rule, measure, now)
            plan = plan if due.is_due else plan.withdrawn(f"not due: {due.reason}")
        order = plan.order(self.run_id)
        write_order(order, self.state, self.store)
        return self._summary(order, plan.estimate()), plan

    def begin(
        self,
        plan: Mapping[str, Any],
        *,
        dry_run: bool,
        optimizers_on: Callable[[TableAddress], Collection[str]],
    ) -> dict[str, Any]:
        """Take the lease, and return the plan as it is carried out.

        That is the plan with ``lease``, or with the engine ``none`` and a ``reason`` if there is
        nothing to do, or another run or Glue owns the table. A repeated call finds that the run
        holds the lease already, and returns the same.

        Args:
            plan: of the table.
            dry_run: plan and report only.
            optimizers_on: returns the optimizers of a table of Glue that are enabled.
        """
        if plan["engine"] == NONE:
            return {**plan, "reason": plan.get("reason") or "nothing to do"}
        if dry_run:
            reason = f"a dry run; {plan['engine']} would do it: {plan.get('reason', '')}"
            return {**plan, "engine": NONE, "reason": reason.rstrip(": ")}
        enabled = optimizers_on(self.table) if self.table.kind == "glue" else ()
        if enabled:
            reason = (
                f"Glue owns it: its optimizers {', '.join(enabled)} are on; switch them off, or"
                " leave the table by a rule"
            )
            return {**plan, "engine": NONE, "reason": reason}
        try:
            lease = self.leases.take(self.table, self.run_id, engine=plan["engine"])
        except LeaseHeld as error:
            return {**plan, "engine": NONE, "reason": str(error)}
        return {**plan, "lease": {"run_id": lease.run_id, "until": lease.until}}

    def order(self, plan: Mapping[str, Any]) -> Order | None:
        """Read the order of a plan; return None if the plan has no order."""
        where = plan.get("order")
        return read_order(where["bucket"], where["key"], self.store) if where else None

    def end(self, plan: Mapping[str, Any] | None, failure: Mapping[str, Any] | None) -> Outcome:
        """Store the outcome, release the lease, and return the outcome.

        Args:
            plan: as it was carried out, or as far as it came.
            failure: the error that ended the work (``Error``, ``Cause``), if any.

        Raises:
            IntegrityError: a document of the run is damaged.
        """
        plan = {**(plan or _NOT_PLANNED), "table": self.table.text, "run_id": self.run_id}
        receipt = read_receipt(self.state, self.run_id, self.table.text, self.store)
        if failure is not None:
            receipt = self._failed(plan["engine"], failure, receipt)
            write_receipt(receipt, self.state, self.store)
        order = self.order(plan) if plan["engine"] != NONE else None
        outcome = outcome_of(plan, order, receipt)
        write_outcome(outcome, self.state, self.store)
        # Last, so that the run that takes the table next finds what this one left.
        self.leases.release(self.table, self.run_id, is_maintained=outcome.status == DONE)
        return outcome

    def _due(self, rule: Rule, measure: TableMeasure, now: float) -> Due:
        lease = self.leases.look(self.table)
        maintained = lease.maintained if lease is not None else None
        workgroup = rule.athena_workgroup
        scans = AthenaScans(workgroup, self.table) if workgroup is not None else None
        return decide_due(rule, measure, maintained, now, scans)

    def _summary(self, order: Order, estimate: Mapping[str, Any]) -> dict[str, Any]:
        bucket, key = places.order_key(self.state, self.run_id, self.table)
        return {
            "run_id": order.run_id,
            "table": order.table,
            "engine": order.engine,
            "reason": order.reason,
            "rule": order.rule,
            "order": {"bucket": bucket, "key": key, "uri": f"s3://{bucket}/{key}"},
            "estimate": estimate,
        }

    def _failed(
        self, engine: str, failure: Mapping[str, Any], receipt: MaintenanceReceipt | None
    ) -> MaintenanceReceipt:
        """Return the receipt with an error, unless the engine recorded its own."""
        receipt = receipt or MaintenanceReceipt(
            table=self.table.text, run_id=self.run_id, engine=engine
        )
        if receipt.is_sound:
            receipt.error = str(failure.get("Error", "Unknown"))
            receipt.cause = failure_text({"Cause": failure.get("Cause")})
        receipt.status = FAILED
        return receipt
