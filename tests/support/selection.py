"""Which tests run when: ``make test-fast``, ``make test`` or only ``make proof``.

``make test`` runs what fails most often: everything that is quick, and of each expensive kind one
example. ``make proof`` runs the rest. A missing entry only costs time.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.slow import SLOW

#: Directories whose tests `make test-fast` runs, but for those marked ``slow``.
FAST_DIRECTORIES = frozenset({"golden", "state", "unit"})
#: Directories and modules that only `make proof` runs, but for EXAMPLES.
PROOF = (
    "e2e/",
    "faults/",
    "foreign/",
    "hostile/",
    "infrastructure/",
    "scale/",
    "spark/",
    "statemachine/",
)
#: Beginnings of the ids of tests below PROOF that `make test` runs as well.
EXAMPLES = (
    # Each command.
    "e2e/test_cli_commands.py",
    # Six configurations, synthesized and linted.
    "infrastructure/test_synthesis.py::test_cfn_lint_finds_nothing",
    "infrastructure/test_configuration.py",
    # The state machine.
    "statemachine/test_definition",
    "statemachine/test_tables_definition.py",
    "statemachine/test_workflow.py",
    # One session of Spark: bytes as a worker's, an oversized partition, an upsert, a rewrite.
    "spark/test_same_bytes.py",
    "spark/test_oversized.py::test_driver_and_lambda_write_the_same_bytes_keys_and_commits",
    "spark/test_upserts.py::test_iceberg_has_the_last_record_of_each_key_in_every_order_of_arrival",
    "spark/test_maintenance.py::test_partitions_are_rewritten_with_the_same_rows",
)
#: Directories that `make test` runs with a sample of their schedules, `make proof` with all.
SAMPLED = ("contract/", "model/", "simulation/")


def marks(path: Path, node_id: str) -> frozenset[str]:
    """Return the marks of a test.

    Args:
        path: of the module, below tests/.
        node_id: pytest's id of the test, below tests/.
    """
    directory, name = path.parts[0], path.stem.removeprefix("test_")
    chosen = set()
    if directory == "unit" and name in SLOW:
        chosen.add("slow")
    elif directory in FAST_DIRECTORIES:
        chosen.add("fast")
    if node_id.startswith(SAMPLED):
        chosen.add("sampled")
    if node_id.startswith(PROOF) and not node_id.startswith(EXAMPLES):
        chosen.add("proof")
    return frozenset(chosen)
