"""What a deployment with a readers' table goes through: runs, late objects, a lost list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from compactor_local.embedded import SeedObject
from tests.infrastructure.cloud.iam import Policies, Statement
from tests.infrastructure.cloud.running import Cloud

#: Starts a run by its name; says how it ended, and why.
Run = Callable[[str], tuple[str, str | None]]
_HOUR = 3_600
_OF_READERS = ("compactor-readers/", "/readers/switches/", ":glue:")


class Readers:
    """The table of a deployment, by what Glue's API and S3 say: nothing of the product reads it.

    Args:
        on: where buckets and the catalog are.
        given: the input of the runs; all sources are in the partition ``day/``.
    """

    def __init__(self, on: Cloud, given: Mapping[str, Any]) -> None:
        self._s3, self._glue, self._cloud = on.client("s3"), on.client("glue"), on
        self._database, _, self._table = given["reader_table"].removeprefix("glue:").partition(".")
        self._source, self._outputs = map(
            _place, (given["s3_source_uri"], given["s3_destination_uri"])
        )
        self._late: list[str] = []
        self._glue.create_database(DatabaseInput={"Name": self._database})
        columns = {"Columns": [{"Name": "id", "Type": "string"}]}
        self._glue.create_table(
            DatabaseName=self._database,
            TableInput={"Name": "columns", "StorageDescriptor": columns},
        )

    def go_through(self, run: Run) -> tuple[str, str | None]:
        """Runs until sources may be deleted; how the last of them ended."""
        sources, records = self._sources(), self._lines(self._source, self._sources())

        _require_done(run("run-1"))
        assert (self._shown(), self._sources()) == (records, sources)

        records = sorted([*records, self._arrives()])
        _require_done(run("run-2"))
        assert self._shown() == records

        # Who switched died before it was written down; nothing else has changed.
        record = self._record
        self._drop(record)
        _require_done(run("run-3"))
        assert self._record == record

        self._drop(self._list)
        self._grace_goes_by()
        status, cause = run("run-4")
        assert (status, "manifest is gone" in (cause or "")) == ("FAILED", True), cause
        assert {*sources} < {*self._sources()}

        records = sorted([*records, self._arrives()])
        _require_done(run("run-5"))
        assert self._shown() == records
        assert {*sources} < {*self._sources()}

        self._grace_goes_by()
        ended = run("run-6")
        assert self._shown() == records
        assert self._sources() == sorted(self._late)
        for key in self._late:
            self._drop((self._source[0], key))
        return ended

    def _arrives(self) -> bytes:
        """The record of an object that comes late, too young to be compacted."""
        self._late.append(f"{self._source[1]}day/late-{len(self._late)}.json")
        line = b'{"id": "late-%d"}' % len(self._late)
        self._cloud.seed(self._source[0], [SeedObject(self._late[-1], line + b"\n")])
        return line

    def _grace_goes_by(self) -> None:
        bucket, key = self._record
        long_ago = time.time() - 2 * _HOUR
        self._cloud.seed(bucket, [SeedObject(key, self._body((bucket, key)), long_ago)])

    def _shown(self) -> list[bytes]:
        """Every record that a query reads, in order."""
        bucket, prefix = _place(self._descriptor["Location"])
        if "Symlink" not in self._descriptor["InputFormat"]:
            return self._lines((bucket, prefix), self._keys(bucket, prefix))
        (name,) = self._keys(bucket, prefix)
        named = [_place(uri) for uri in self._body((bucket, name)).decode().splitlines()]
        return sorted(line for place in named for line in self._body(place).splitlines())

    @property
    def _partition(self) -> Mapping[str, Any]:
        found = self._glue.get_partitions(DatabaseName=self._database, TableName=self._table)
        (partition,) = found["Partitions"]
        assert partition["Values"] == ["day"]
        return dict(partition)

    @property
    def _descriptor(self) -> Mapping[str, Any]:
        return dict(self._partition["StorageDescriptor"])

    @property
    def _list(self) -> tuple[str, str]:
        bucket, prefix = _place(self._descriptor["Location"])
        (name,) = self._keys(bucket, prefix)
        return bucket, name

    @property
    def _record(self) -> tuple[str, str]:
        """Where it is written down that the catalog was seen to show what it shows."""
        bucket, prefix = self._outputs
        switch = self._partition["Parameters"]["compactor.switch"]
        listed = self._keys(bucket, f"_compactor/{prefix}readers/switches/")
        (found,) = [key for key in listed if switch in key]
        return bucket, found

    def _sources(self) -> list[str]:
        return self._keys(*self._source)

    def _keys(self, bucket: str, prefix: str) -> list[str]:
        listed = self._s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        return sorted(one["Key"] for one in listed)

    def _lines(self, place: tuple[str, str], keys: list[str]) -> list[bytes]:
        return sorted(line for key in keys for line in self._body((place[0], key)).splitlines())

    def _body(self, place: tuple[str, str]) -> bytes:
        bucket, key = place
        return bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    def _drop(self, place: tuple[str, str]) -> None:
        bucket, key = place
        self._s3.delete_object(Bucket=bucket, Key=key)


def rights_of_readers(policies: Policies) -> Iterator[Statement]:
    """What a role may do to a readers' table, its lists and the records of them.

    Returns:
        A statement for each action and resource; those about prefixes that have more than that
        below them are left out.
    """
    for statement in policies.identity:
        bounds = [text for _, _, values in statement.conditions for text in values]
        for action, resource in product(statement.actions, statement.resources):
            if any(part in text for text in (resource, *bounds) for part in _OF_READERS):
                yield replace(statement, actions=(action,), resources=(resource,))


def _place(uri: str) -> tuple[str, str]:
    bucket, _, rest = uri.removeprefix("s3://").partition("/")
    return bucket, rest


def _require_done(ended: tuple[str, str | None]) -> None:
    status, cause = ended
    assert status == "SUCCEEDED", cause
