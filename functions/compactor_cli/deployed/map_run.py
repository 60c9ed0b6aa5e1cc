"""Progress of the partitions of a run: counts of its Map Runs, and failed children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compactor_cli.deployed.aws import Aws, needing
from compactor_cli.deployed.executions import Execution, describe

_FAILED = ("FAILED", "TIMED_OUT", "ABORTED")


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Counts of the partitions of one Map Run, by status of their execution."""

    total: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> PartitionCounts:
        """Convert ``itemCounts`` of DescribeMapRun; timeouts and aborts count as failed."""
        return cls(
            total=counts["total"],
            pending=counts["pending"] + counts.get("pendingRedrive", 0),
            running=counts["running"],
            succeeded=counts["succeeded"],
            failed=counts["failed"] + counts["timedOut"] + counts["aborted"],
        )

    @property
    def ended(self) -> int:
        """Partitions that are finished in this run."""
        return self.succeeded + self.failed

    @property
    def line(self) -> str:
        """The counts as text."""
        parts = [f"{self.ended:,}/{self.total:,} partitions"]
        for name in ("running", "failed"):
            if getattr(self, name):
                parts.append(f"{getattr(self, name):,} {name}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class PartitionFailure:
    """One partition that failed in a Map Run, after all retries.

    Attributes:
        path: below the source root.
        status: of the child execution.
    """

    path: str
    status: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def find_map_runs(aws: Aws, execution_arn: str) -> dict[str, str]:
    """Return the execution's Map Runs so far: label of the Map -> ARN.

    Raises:
        Failure: a permission is missing.
    """
    with needing("states:ListMapRuns"):
        found = aws.client("stepfunctions").list_map_runs(executionArn=execution_arn)["mapRuns"]
    arns = [str(one["mapRunArn"]) for one in found]
    # arn:…:mapRun:<state machine>/<label>:<its own id>
    return {arn.rpartition("/")[2].partition(":")[0]: arn for arn in arns}


def count_partitions(aws: Aws, map_run_arn: str) -> PartitionCounts:
    """Return the counts of a Map Run.

    Raises:
        Failure: a permission is missing.
    """
    with needing("states:DescribeMapRun"):
        found = aws.client("stepfunctions").describe_map_run(mapRunArn=map_run_arn)
    return PartitionCounts.of(found["itemCounts"])


def failures(aws: Aws, map_run_arn: str) -> Iterator[PartitionFailure]:
    """Yield the failed partitions, latest first; each costs a request.

    Raises:
        Failure: a permission is missing.
    """
    client = aws.client("stepfunctions")
    for status in _FAILED:
        pages = client.get_paginator("list_executions").paginate(
            mapRunArn=map_run_arn, statusFilter=status
        )
        for page in _pages(pages):
            for one in page["executions"]:
                child = describe(aws, one["executionArn"])
                yield PartitionFailure(_path(child), child.status, child.why)


def _pages(pages: Any) -> Iterator[Any]:
    iterator = iter(pages)
    while True:
        with needing("states:ListExecutions"):
            page = next(iterator, None)
        if page is None:
            return
        yield page


def _path(child: Execution) -> str:
    """Return the first path of a batch and the number of others; the report says which failed."""
    items = child.given.get("Items", [child.given])
    found = [_path_of(one) for one in items] if isinstance(items, list) else ["?"]
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else "?"


def _path_of(item: object) -> str:
    # An item of a batch is the partition itself.
    partition = item.get("partition", item) if isinstance(item, Mapping) else None
    path = partition.get("path") if isinstance(partition, Mapping) else None
    return "?" if path is None else str(path) or "(root)"
