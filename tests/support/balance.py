"""Which test modules one process of pytest-xdist runs together, and which it starts with.

By default ``--dist loadfile`` starts with the modules that have most tests. Then two modules with
the same deployments, or the same Spark, create them twice; and a long module of few tests starts
last, when the other process has nothing left to do.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # not marked as typed

#: Modules that run together, the longest first; an outdated order only costs time.
TOGETHER: tuple[tuple[str, ...], ...] = (
    (
        "infrastructure/test_synthesis",
        "infrastructure/test_runs",
        "infrastructure/test_roles",
        "infrastructure/test_resources",
        "infrastructure/test_events",
        "infrastructure/test_limits",
        "infrastructure/test_notifications",
        "infrastructure/test_configuration",
        "infrastructure/test_maintenance_run",
    ),
    # All of them share one Spark with whatever their process ran before.
    (
        "spark/test_maintenance",
        "spark/test_maintenance_job",
        "spark/test_maintenance_conflicts",
        "spark/test_delta_checkpoints",
        "spark/test_log_store",
    ),
    (
        "spark/test_upserts",
        "spark/test_keyed_runs",
        "spark/test_table_schedules",
        "spark/test_table_engines",
        "spark/test_upsert_opening",
    ),
    (
        "spark/test_parquet_columns",
        "spark/test_parquet_job",
        "spark/test_rows_like_spark",
    ),
    ("faults/test_faulty_runs",),
    ("spark/test_keyed_workflow",),
    ("spark/test_shipping", "spark/test_executors"),
    ("faults/test_dropped_conditions",),
    ("spark/test_table_sink",),
    ("spark/test_tables_workflow",),
    ("e2e/test_installed",),
    ("spark/test_maintenance_plans",),
    ("hostile/test_memory",),
    ("hostile/test_row_memory",),
    ("faults/test_machine_faults",),
    ("faults/test_wrong_bytes",),
    ("e2e/test_queries",),
    ("e2e/test_cli_demo",),
    ("statemachine/test_spark_branch",),
    ("unit/test_s3_answers",),
    ("unit/test_cli_typed",),
    ("spark/test_workflow_with_spark",),
    ("simulation/test_schedules",),
    ("spark/test_readers_spark",),
    ("e2e/test_readers_trino",),
    ("e2e/test_demo_ingest",),
    ("unit/test_properties",),
    ("statemachine/test_engine",),
    ("statemachine/test_workflow",),
    ("e2e/test_clean_up_run",),
    ("spark/test_bad_input",),
    ("e2e/test_killed_workers",),
    ("spark/test_rest_catalog",),
    ("hostile/test_fuzzer",),
    ("simulation/test_tables",),
    ("e2e/test_large_runs",),
    ("e2e/test_readers",),
    ("spark/test_run_by_events",),
    ("e2e/test_cli_commands",),
    ("spark/test_same_bytes",),
    ("unit/test_type_check",),
)
_PLACES = {
    f"tests/{name}.py": f"{number:02} {names[0]}"
    for number, names in enumerate(TOGETHER)
    for name in names
}


class Balanced(LoadFileScheduling):
    """``--dist loadfile``, with modules that share expensive resources in one unit of work."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.split("::", 1)[0]
        return _PLACES.get(module, module)

    def _assign_work_unit(self, node: object) -> None:
        # Numbers sort before names; names keep their order.
        first = min(self.workqueue, key=lambda scope: scope[:2] if scope[0].isdigit() else "~")
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
