"""Turn many small S3 objects into few large ones, without losing or doubling a record.

For programs (docs/python.md; ``import compactor`` loads none of it):

    compactor.plan      what a run would do          -> Plan
    compactor.run       compact, clean up, report    -> RunReport
    compactor.verify    read every output again      -> Verification
    compactor.restore   give sources back            -> list of Restored
    compactor.clean_up  delete what is proven        -> CleanUp

The eight verbs, one module each, and what each hands to the next:

    discover    settings              -> work items, one per partition
    plan        listing, log          -> groups of sources
    compact     group                 -> a pending output that no reader sees
    verify      pending output        -> nothing, or an IntegrityError
    commit      pending output        -> one more entry in the partition's commit log
    publish     commit                -> the output becomes readable
    cleanup     commits past retention-> their sources are deleted
    report      receipts              -> one account of the run

``runs.partition_progress`` is where the verbs of one partition meet: ``runs.run_partition`` works
through it in one process, the driver of the Spark job in many. ``cleaning.clean_partition`` does
the same for ``cleanup``, days later, and proves each output first. ``restore`` undoes it for one
source. ``model``, ``errors``, ``settings`` and ``ports`` are the vocabulary shared by all of them;
only ``s3`` talks to S3, and ``aws`` to other AWS services.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from compactor_cli.api import (
        CleanUp,
        Plan,
        Restored,
        RunReport,
        Step,
        Verification,
        clean_up,
        plan,
        restore,
        run,
        verify,
    )

__all__ = [
    "CleanUp",
    "Plan",
    "Restored",
    "RunReport",
    "Step",
    "Verification",
    "clean_up",
    "plan",
    "restore",
    "run",
    "verify",
]


# No package here may have one of these names: importing it would replace the function.
def __getattr__(name: str) -> Any:
    """Load the API when it is first used: Lambda functions are deployed without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("compactor_cli.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
