"""Write down a state, its outputs and its sources as this version of the program leaves them.

    python -m tests.state.write_state tests/state/1.zip

To be run once for each version of a document that is released: what a fixture holds is in some
user's bucket from then on, and it is never written again. Identities are counted instead of drawn,
and time stands where it is put, so that a second writing differs in measured seconds alone.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import uuid
import zipfile
import zlib
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Any

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_list import find_due, write_due
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.log.entries import Columnar, Commit, DeadLetters, Output
from compactor.log.log import CommitLog
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import Compression, Format, Partition, QuarantineReason
from compactor.outputs.publish import publish
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.planning.packing import make_group
from compactor.probe.probe import traits_for
from compactor.report.report import RunIdentity, report
from tests.support.examples import limited
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore
from tests.support.parquet_example import PARQUET

DAY = 86_400
BEGIN = 1_748_736_000.0  # 2025-06-01
# So that a small output is one that S3 copied.
_LIMITS = {"small_object_bytes": 65_536}


def _drawn() -> Iterator[uuid.UUID]:
    return (uuid.UUID(int=number << 64 | 0x5EED) for number in itertools.count(1))


class Writer:
    """A store with sources, and the runs over them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.settings = limited({**given, **_LIMITS})
        self.clock = ManualClock(BEGIN)
        self.store = MemoryStore(self.clock)
        self.store.endpoint_url = "http://127.0.0.1:9000"
        self.store.add_bucket("lake")
        self.originals: dict[tuple[str, str], bytes] = {}
        self.runs: list[str] = []
        self._records = itertools.count(1)

    def put(self, key: str, body: bytes, etag: str = "") -> None:
        """A source, as old as a source must be."""
        arrived = self.clock.now() - 2 * DAY
        one = self.store.seed("source", f"logs/{key}", body, etag=etag, last_modified=arrived)
        self.originals[one.key, one.etag] = body

    def put_again(self, key: str) -> None:
        """The same bytes under the same key, later than their commit."""
        body = self.store.contents("source")[f"logs/{key}"]
        self.store.seed("source", f"logs/{key}", body, last_modified=self.clock.now())

    def record(self) -> str:
        """The name of one more record."""
        return f"record-{next(self._records)}"

    def objects(self, records: int) -> bytes:
        """JSON lines; the last one ends the content without a newline."""
        return "\n".join(f'{{"id": "{self.record()}"}}' for _ in range(records)).encode()

    def rows(self, header: str, records: int) -> bytes:
        """CSV."""
        lines = [header, *(f"{n},{self.record()},2.5" for n in range(records))]
        return "".join(f"{line}\n" for line in lines).encode()

    def lines(self, records: int, text: str = "") -> bytes:
        """Lines of a log."""
        return "".join(
            f"2025-05-30T12:00:{n % 60:02d}Z INFO {self.record()} {text}\n" for n in range(records)
        ).encode()

    def trail(self, records: int) -> bytes:
        """A CloudTrail document."""
        events = [
            {
                "eventVersion": "1.08",
                "eventTime": "2025-05-30T12:00:00Z",
                "eventSource": "s3.amazonaws.com",
                "eventName": "GetObject",
                "awsRegion": "us-east-1",
                "eventID": self.record(),
            }
            for _ in range(records)
        ]
        return gzip.compress(json.dumps({"Records": events}).encode(), mtime=0)

    def run(self, run_id: str) -> None:
        """A whole run, as the workflow goes through its handlers."""
        self.runs.append(run_id)
        settings, store, now = self.settings, self.store, self.clock.now()
        found = discover(settings, store, now)
        traits_for(settings.state, store, now)
        write_work(found, settings, run_id, store)
        for item in found.partitions:
            work = PartitionRun(item, settings, store, self.clock, NoDeadline(), run_id)
            with suppress(Crashed):
                compact_partition(work, Counts())
        due = find_due(settings, store, self.clock.now())
        write_due(due, settings, run_id, store)
        for one in due:
            cleaning = CleanUpRun(one.path, settings, store, self.clock, NoDeadline(), run_id)
            record_clean_up(cleaning, CleanUpReceipt(one.path, run_id))
        report(RunIdentity(run_id, "2025-06-01T00:00:00Z"), settings, store)

    def log(self, path: str) -> CommitLog:
        """The commit log of a partition."""
        return CommitLog(self.store, self.settings, Partition("source", f"logs/{path}", path))

    def _committed(self, partition: Partition) -> Container[bytes]:
        return CommitLog(self.store, self.settings, partition).load().committed

    def crash_before_publishing(self, *paths: str) -> None:
        """From now on a worker dies between the commit and the publication of such outputs."""

        def hook(call: Call) -> None:
            if call.name == "complete_upload" and any(f"/{path}" in call.key for path in paths):
                raise Crashed

        self.store.hooks.before.append(hook)

    def crash_before_summing_up(self, *paths: str) -> None:
        """A worker dies before it can write a checkpoint."""

        def hook(call: Call) -> None:
            summed_up = call.key.endswith(".checkpoint.json.gz")
            if call.name == "create" and summed_up and any(f"/{one}" in call.key for one in paths):
                raise Crashed

        self.store.hooks.before.append(hook)

    def lose_upload(self, path: str) -> None:
        """The bucket's lifecycle rule ends an upload."""
        uploads = self.store._buckets["lake"].uploads
        for name in [name for name, one in uploads.items() if f"/{path}" in one.key]:
            del uploads[name]

    def rows_commit(self, path: str) -> None:
        """A commit as the Spark job makes it: three rows and a dead-letter record."""
        self.put(f"{path}a.json", b'{"id": 0}\n{"id": 1}\n')
        self.put(f"{path}b.json", b'{"id": 2}\n{"id": "no number"}\n')
        (page,) = self.store.list_objects("source", f"logs/{path}")
        group = make_group(page, self.settings)
        source = f"s3://source/logs/{path}b.json"
        reason = 'column id is bigint, and does not take "no number"'
        line = {"source": source, "record": '{"id": "no number"}', "reason": reason}
        body = json.dumps(line).encode() + b"\n"
        state = self.settings.state.prefix
        dead = f"{state}partitions/{path}dead-letters/{group.id}-0123456789abcdef.json"
        self.store.put("lake", dead, body, content_type="application/x-ndjson")
        fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
        schema = {"type": "struct", "fields": fields}
        pin = {"version": 1, "schema": schema}
        name = f"{state}parquet-schemas/{1:020d}.json"
        self.store.create("lake", name, json.dumps(pin, indent=1).encode())
        key = f"compacted/{path}compacted-{group.id}.parquet"
        upload_id = self.store.create_upload("lake", key)
        part = self.store.upload_part("lake", key, upload_id, 1, PARQUET)
        kept = DeadLetters("lake", dead, len(body), zlib.crc32(body), 1)
        digest = "89abcdef01234567"
        output = Output(
            bucket="lake",
            key=key,
            upload_id=upload_id,
            parts=(part,),
            size=len(PARQUET),
            crc32=zlib.crc32(PARQUET),
            plain_bytes=None,
            records=3,
            format=Format.PARQUET,
            compression=Compression.NONE,
            columnar=Columnar(4, 3, digest, digest, "gzip", json.dumps(schema), kept),
        )
        facts = SliceFacts(2)
        rows = tuple(ManifestRow(one, 0, 0, None, None, facts) for one in page)
        log = self.log(path)
        draft = Commit(
            sequence=0,
            commit_id=uuid.uuid4().hex,
            run_id=self.runs[-1],
            created_at=self.clock.now(),
            source_bucket="source",
            group_id=group.id,
            output=output,
            rows=rows,
        )
        publish(log.append(log.load(), draft), self.store)

    def save(self, name: str) -> None:
        """Everything as one archive: ``index.json``, and the bytes of each line of it."""
        bodies: list[bytes] = []
        index: dict[str, Any] = {
            "now": self.clock.now(),
            "input": self.given,
            "runs": self.runs,
            "objects": [],
            "uploads": [],
            "originals": [],
            "unreadable": [
                [*where, reason.value] for where, reason in self.store.unreadable.items()
            ],
        }

        def keep(body: bytes) -> str:
            if body not in bodies:
                bodies.append(body)
            return f"{bodies.index(body):03d}"

        for bucket in ("lake", "source"):
            there = self.store._buckets[bucket]
            for key, one in sorted(there.objects.items()):
                line: dict[str, Any] = {"bucket": bucket, "key": key, "etag": one.etag}
                line |= {"last_modified": one.last_modified, "content_type": one.content_type}
                line |= {"metadata": dict(one.metadata), "body": keep(one.body)}
                index["objects"].append(line)
            for upload_id, upload in there.uploads.items():
                parts = {number: keep(part.body) for number, part in upload.parts.items()}
                line = {"bucket": bucket, "key": upload.key, "upload_id": upload_id}
                line |= {"content_type": upload.content_type, "began": upload.began}
                line |= {"metadata": dict(upload.metadata), "parts": parts}
                index["uploads"].append(line)
        for (key, etag), body in self.originals.items():
            index["originals"].append({"key": key, "etag": etag, "body": keep(body)})
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "index.json", json.dumps(index, indent=1).encode())
            for number, body in enumerate(bodies):
                _add(archive, f"{number:03d}", body)


def _add(archive: zipfile.ZipFile, name: str, body: bytes) -> None:
    info = zipfile.ZipInfo(name, (2025, 6, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, body)


def fill(writer: Writer) -> None:
    """Sources of every kind."""
    writer.put("json/a.json", writer.objects(3))
    writer.put("json/b.json", writer.objects(2))
    writer.put("json/c.json", b"")
    writer.put("csv/a.csv", writer.rows("id,name,value", 3))
    writer.put("csv/b.csv", writer.rows("id,name,value", 2))
    writer.put("csv/c.csv", writer.rows("id,name,value", 2))
    writer.put("csv/words.csv", b"id,name,value\nalice,paris\n")
    writer.put("gzip/a.log.gz", gzip.compress(writer.lines(3), mtime=0))
    writer.put("gzip/b.log.gz", gzip.compress(writer.lines(2), mtime=0))
    broken = gzip.compress(b"2025-05-30T12:00:00Z INFO never read\n" * 40, mtime=0)
    writer.put("gzip/broken.log.gz", broken[:-9])
    for name in ("1", "2"):
        writer.put(f"trail/1_CloudTrail_us-east-1_{name}.json.gz", writer.trail(2))
    writer.put("copies/large.log", writer.lines(1_200, "the same words in every line"))
    writer.put("copies/small-1.log", writer.lines(2))
    writer.put("copies/small-2.log", writer.lines(2))
    for path in ("Größe & mehr", "commits"):
        writer.put(f"{path}/a.json", writer.objects(2))
        writer.put(f"{path}/b.json", writer.objects(2))


def write(writer: Writer) -> None:
    """What was overwritten, left alone, not summed up and not published."""
    fill(writer)
    fill_what_is_left_alone(writer)
    writer.run("run-1")
    writer.clock.advance(DAY)
    fill_what_is_new(writer)
    writer.rows_commit("rows/")
    writer.crash_before_summing_up("trail/")
    writer.run("run-2")
    writer.clock.advance(7 * DAY - 1)
    end_before_publishing(writer)


def fill_what_is_left_alone(writer: Writer) -> None:
    """Sources that are in no output, for what they hold or because nobody may read them."""
    writer.put("odd/page.xml", b"<a><b>never read</b></a>\n")
    writer.put("odd/feed.xml", b"<?xml version='1.0'?><a/>\n")
    writer.put("odd/words.log", "größer\n".encode("utf-16"))
    writer.put("denied/a.log", writer.lines(1))
    writer.put("denied/b.log", writer.lines(1))
    writer.put("denied/c.log", b"2025-05-30T12:00:00Z INFO nobody may read this\n")
    writer.store.unreadable["source", "logs/denied/c.log"] = QuarantineReason.ACCESS_DENIED


def fill_what_is_new(writer: Writer) -> None:
    """New sources, and objects put over compacted ones: the same content and others."""
    writer.put("json/d.json", writer.objects(2))
    writer.put("json/a.json", writer.store.contents("source")["logs/json/a.json"], "0" * 31 + "a-1")
    writer.put_again("gzip/a.log.gz")
    writer.put("csv/b.csv", writer.rows("id,name,value", 1))
    writer.put("csv/d.csv", writer.rows("id,name,value", 1))
    for name in ("3", "4"):
        writer.put(f"trail/1_CloudTrail_us-east-1_{name}.json.gz", writer.trail(1))


def end_before_publishing(writer: Writer) -> None:
    """The last run ends between two commits and their publication, and one upload is lost."""
    for path in ("crash", "lost"):
        writer.put(f"{path}/a.json", writer.objects(2))
        writer.put(f"{path}/b.json", writer.objects(2))
    writer.crash_before_publishing("crash/", "lost/")
    writer.run("run-3")
    writer.lose_upload("lost/")


def main(name: str) -> None:
    """Write one fixture."""
    drawn = _drawn()
    uuid.uuid4 = lambda: next(drawn)  # the identities of commits, logs and probes
    given = {
        "s3_source_uri": "s3://source/logs/",
        "s3_destination_uri": "s3://lake/compacted/",
        "depth": 1,
        "delete_after": "7d",
        "formats": [{"match": "*.csv", "format": "csv", "header": True}],
    }
    writer = Writer(given)
    write(writer)
    writer.save(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
