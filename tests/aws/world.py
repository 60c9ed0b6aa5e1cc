"""What the checks of the smoke test work on."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.stack import Stack
from tests.aws.checks import CheckFailed, NotRun

PREFIX = "compactor-smoke-"
SUFFIX = re.compile(r"[0-9a-f]{8}")
_POLL_SECONDS = 3.0
#: The whole test has 30 minutes; the last eight are for the removal.
CHECK_SECONDS = 22 * 60.0


@dataclass(frozen=True, slots=True)
class Names:
    """The names of everything that a smoke test makes; all derive from its suffix.

    Attributes:
        suffix: eight hexadecimal digits.
    """

    suffix: str

    @property
    def base(self) -> str:
        """What every name begins with."""
        return f"{PREFIX}{self.suffix}"

    @property
    def stacks(self) -> Mapping[str, str]:
        """The stacks, by what they are for."""
        tables = f"{self.base}-t"
        return {"runs": f"{self.base}-r", "tables": tables, "maintenance": f"{tables}-tables"}

    @property
    def source(self) -> str:
        """Bucket of the sources."""
        return f"{self.base}-source"

    @property
    def lake(self) -> str:
        """Bucket of outputs, state and tables."""
        return f"{self.base}-lake"

    @property
    def probe(self) -> str:
        """Bucket for requests that are meant to be refused."""
        return f"{self.base}-probe"

    @property
    def database(self) -> str:
        """Database in Glue's catalog."""
        return self.base.replace("-", "_")

    @property
    def key_alias(self) -> str:
        """Alias of the KMS key."""
        return f"alias/{self.base}"

    @property
    def buckets(self) -> tuple[str, ...]:
        """All buckets."""
        return self.source, self.lake, self.probe


@dataclass
class World:
    """What the checks work on.

    Attributes:
        client: returns the client of a service; raises NotRun where there is none.
        store: S3 as runs use it.
        names: of what was made.
        stacks: by what they are for (``runs``, ``tables``).
        endpoint: id of the endpoint for S3 in the functions' VPC; empty if they are in none.
        per_day: objects in each of the two date prefixes.
        wait_seconds: the longest wait for one answer.
        check_seconds: from the beginning until no check waits any more; removal follows.
        pause: waits so many seconds.
        clock: seconds that only grow.
        executions: ARNs of the runs that were started.
        counts: objects and requests of the test itself.
    """

    client: Callable[[str], Any]
    store: ObjectStore
    names: Names
    stacks: Mapping[str, Stack]
    endpoint: str = ""
    per_day: int = 1_000
    wait_seconds: float = 600.0
    check_seconds: float = CHECK_SECONDS
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    executions: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the checks end, however many there still are."""
        return self.began + self.check_seconds - self.clock()

    @property
    def runs(self) -> Stack:
        """The stack that compacts."""
        return self._stack("runs")

    @property
    def tables(self) -> Stack:
        """The stack that writes a table."""
        return self._stack("tables")

    @property
    def maintenance(self) -> Stack:
        """The stack that maintains it."""
        return self._stack("maintenance")

    @property
    def probes(self) -> S3Uri:
        """A prefix of the state for the test's own requests."""
        state = S3Uri.parse("StateUri", self.runs.state_uri)
        return S3Uri(state.bucket, f"{state.prefix}probes/smoke-{self.names.suffix}/")

    def _stack(self, name: str) -> Stack:
        if name not in self.stacks:
            raise NotRun(f"there is no stack for {name}")
        return self.stacks[name]

    def until(self, what: str, found: Callable[[], Any]) -> Any:
        """Wait until something is found, and return it.

        Raises:
            CheckFailed: it was not found in time.
        """
        seconds = max(0.0, min(self.wait_seconds, self.remaining_seconds))
        end = self.clock() + seconds
        while not (answer := found()):
            if self.clock() >= end:
                raise CheckFailed(f"{what}: not within {seconds:.0f} seconds")
            self.pause(_POLL_SECONDS)
        return answer

    def start(self, name: str, machine: str, given: Mapping[str, Any]) -> str:
        """Start a run; return its ARN."""
        run = f"smoke-{self.names.suffix}-{name}"
        started = self.client("stepfunctions").start_execution(
            stateMachineArn=machine, name=run, input=json.dumps(given)
        )
        self.executions[name] = started["executionArn"]
        return self.executions[name]

    def ended(self, arn: str) -> Mapping[str, Any]:
        """Wait for the end of a run, and return it.

        Raises:
            CheckFailed: it did not end in time.
        """
        client = self.client("stepfunctions")

        def end() -> Mapping[str, Any] | None:
            found: Mapping[str, Any] = client.describe_execution(executionArn=arn)
            return None if found["status"] in {"RUNNING", "PENDING_REDRIVE"} else found

        found: Mapping[str, Any] = self.until("the end of the run", end)
        return found

    def run(self, name: str, machine: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run to the end, which must be a success.

        Raises:
            CheckFailed: it failed; with the cause.
        """
        found = self.ended(self.start(name, machine, given))
        if found["status"] != "SUCCEEDED":
            raise CheckFailed(f"{found['status']}: {found.get('error', '')} {found.get('cause')}")
        return found

    @contextmanager
    def denied(self, bucket: str, action: str, condition: Mapping[str, Any]) -> Iterator[None]:
        """Deny an action on a bucket's objects under a condition, by its policy, in the block."""
        s3 = self.client("s3")
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": action,
            "Resource": f"arn:{s3.meta.partition}:s3:::{bucket}/*",
            "Condition": condition,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        s3.put_bucket_policy(Bucket=bucket, Policy=policy)
        try:
            yield
        finally:
            s3.delete_bucket_policy(Bucket=bucket)

    def refused(self, what: str, call: Callable[[], Any]) -> str:
        """Return the error code of a request that must be refused.

        Raises:
            CheckFailed: it was answered.
        """
        try:
            call()
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        raise CheckFailed(f"{what}: accepted")
