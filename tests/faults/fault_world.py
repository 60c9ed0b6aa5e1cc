"""A source and a destination on a real server, runs over them through the proxy, and the proof."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any

import boto3

from compactor.settings.settings import Settings
from compactor_cli.failures import message_of
from compactor_local.engine import Engine, EngineOptions, WorkflowResult
from tests.faults.figures import Figures
from tests.faults.processes import compactor
from tests.support.audit import Places, Proof, audit
from tests.support.fault_proxy import FaultProxy
from tests.support.faults import Rule
from tests.support.foreign_records import records


@dataclass(frozen=True, slots=True)
class Bench:
    """What all worlds of a session share.

    Attributes:
        environment: credentials and region; the endpoint is told by those who ask.
        endpoint_url: of the server itself, past the proxy.
        checks_signatures: the server does, and so refuses a body that is not what was signed.
    """

    engine: Engine
    proxy: FaultProxy
    endpoint_url: str
    environment: Mapping[str, str]
    figures: Figures
    checks_signatures: bool

    @property
    def client(self) -> Any:
        """Plain boto3, past the proxy."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )


class FaultWorld:
    """Buckets of its own."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench = bench
        self.name = name
        self.client = bench.client
        self.source, self.lake = f"{name}-source", f"{name}-lake"
        self.sources: dict[str, bytes] = {}
        self.runs = 0
        for bucket in (self.source, self.lake):
            self.client.create_bucket(Bucket=bucket)

    @property
    def places(self) -> tuple[str, str]:
        """SOURCE and DEST of the command line."""
        return f"s3://{self.source}/logs/", f"s3://{self.lake}/compacted/"

    @property
    def fields(self) -> dict[str, Any]:
        """The input of a run over all partitions."""
        source, destination = self.places
        return {
            "s3_source_uri": f"{source}*/",
            "s3_destination_uri": destination,
            "settle_seconds": 0,
            "formats": [{"match": "*.csv", "format": "csv", "header": True}],
        }

    def seed(self, objects: Iterable[tuple[str, bytes]]) -> None:
        for key, body in objects:
            self.sources[f"logs/{key}"] = body
            self.client.put_object(Bucket=self.source, Key=f"logs/{key}", Body=body)

    def run(
        self,
        rules: Sequence[Rule] = (),
        *,
        seed: int = 0,
        workers: int = 1,
        engine: Engine | None = None,
        handler_timeout_seconds: float = 120.0,
        **fields: Any,
    ) -> WorkflowResult:
        """One execution with these faults; it must end Succeeded, or say why not in one line."""
        proxy, figures = self.bench.proxy, self.bench.figures
        before = proxy.counts.copy()
        proxy.use(rules, seed=seed)
        self.runs += 1
        try:
            result = (engine or self.bench.engine).run(
                {**self.fields, **fields},
                run_name=f"{self.name}-{self.runs}",
                workers=workers,
                options=EngineOptions(
                    wait_scale=0.02, handler_timeout_seconds=handler_timeout_seconds
                ),
            )
        finally:
            proxy.use((), seed=0)
            figures.add(proxy.counts - before)
        figures.runs += 1
        must_have_ended(result)
        return result

    def must_not_be_doubled(self) -> None:
        """Whatever a run came to, a reader of the destination sees no record twice."""
        wanted, found = self._records()
        assert not found - wanted, "records are doubled, or new"

    def must_be_complete(self) -> None:
        """What plain boto3 reads, which compares checksums, is every record once."""
        wanted, found = self._records()
        assert found == wanted

    def _records(self) -> tuple[Counter[str], Counter[str]]:
        """Those of the sources, and those in the destination."""
        wanted: Counter[str] = Counter()
        for key, body in self.sources.items():
            wanted.update(records(key, body))
        found: Counter[str] = Counter()
        for key in self.keys(self.lake, "compacted/"):
            found.update(records(key, self.body(key)))
        return wanted, found

    def must_be_proven(self, *, left_alone: int = 0) -> Proof:
        """A run without faults succeeds; then verify and an audit find every record once."""
        self.must_not_be_doubled()
        result = self.run()
        assert result.status == "SUCCEEDED", result.cause
        checked = self.verify("--json")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert json.loads(checked.stdout)["findings"] == []
        proof = audit(self._audited(), self.client)
        assert proof.holds, proof.findings
        assert proof.left_alone == left_alone
        assert proof.sources + proof.left_alone == len(self.sources)
        self.bench.figures.records += proof.records
        return proof

    def verify(self, *options: str) -> CompletedProcess[str]:
        """``compactor verify`` as a process."""
        return self.compactor("verify", *self.places, *options)

    def compactor(self, *arguments: str, before: str = "") -> CompletedProcess[str]:
        """The command line as a process, past the proxy."""
        return compactor(
            *(*arguments, "--endpoint-url", self.bench.endpoint_url),
            environment=self.bench.environment,
            before=before,
        )

    def keys(self, bucket: str, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def body(self, key: str) -> bytes:
        """An object of the destination's bucket."""
        content: bytes = self.client.get_object(Bucket=self.lake, Key=key)["Body"].read()
        return content

    def _audited(self) -> Places:
        settings = Settings.from_input(self.fields)
        return Places(settings.source.root, settings.destination, settings.state)


def must_have_ended(result: WorkflowResult) -> None:
    """Succeeded, or failed with one line that says why."""
    assert result.status in {"SUCCEEDED", "FAILED"}
    if result.status == "FAILED":
        line = message_of(result.cause)
        assert line.strip(), result
        assert "\n" not in line
