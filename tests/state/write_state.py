"""Write down a state, its outputs and its sources as a version of this program leaves them.

    git worktree add OLD COMMIT
    PYTHONPATH=OLD/functions:OLD python tests/state/write_state.py COMMIT tests/state/COMMIT.zip

The code of that commit does everything, its in-memory store included; this script tells it what
to do, and knows where its modules were. Identities are counted instead of drawn, and time stands
where it is put, so that a second writing differs in measured seconds alone. A fixture is never
written anew: what it holds is out there in somebody's bucket.
"""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import sys
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

DAY = 86_400
BEGIN = 1_748_736_000.0  # 2025-06-01
# What is looked for, and in which modules it was, today's first.
_PLACES = {
    "Settings": ("compactor.settings.settings", "compactor.settings"),
    "discover": ("compactor.discovery.discover", "compactor.discover"),
    "write_work": ("compactor.discovery.work", "compactor.work"),
    "find_due": ("compactor.cleaning.work", "compactor.clean_up_work"),
    "write_due": ("compactor.cleaning.work", "compactor.clean_up_work"),
    "report": ("compactor.report.report", "compactor.report"),
    "RunIdentity": ("compactor.report.report", "compactor.report"),
    "CommitLog": ("compactor.log.log", "compactor.commit"),
    "Commit": ("compactor.log.entries", "compactor.log_entries", "compactor.commit_log"),
    "Output": ("compactor.log.entries", "compactor.log_entries", "compactor.commit_log"),
    "Columnar": ("compactor.log.columnar", "compactor.columnar"),
    "Rejects": ("compactor.log.columnar", "compactor.columnar"),
    "ManifestRow": ("compactor.log.manifest", "compactor.manifest"),
    "SliceFacts": ("compactor.log.slices", "compactor.restoring"),
    "make_group": ("compactor.planning.packing", "compactor.packing"),
    "publish": ("compactor.outputs.publish", "compactor.publish"),
    "ensure_asked": ("compactor.probe.probe", "compactor.probe"),
    "Undoing": ("compactor.outputs.undo", "compactor.undo"),
    "undo": ("compactor.outputs.undo", "compactor.undo"),
    "PassedRecord": ("compactor.log.passed", "compactor.passed_records"),
    "write_passed": ("compactor.log.passed", "compactor.passed_records"),
}


def _drawn() -> Iterator[uuid.UUID]:
    return (uuid.UUID(int=number << 64 | 0x5EED) for number in itertools.count(1))


_uuids = _drawn()
uuid.uuid4 = lambda: next(_uuids)  # the identities of commits, logs and probes


def _had(name: str) -> bool:
    """Whether that version has it."""
    with suppress(ModuleNotFoundError, AttributeError):
        return bool(_of(name))
    return False


def _of(name: str) -> Any:
    for place in _PLACES[name]:
        with suppress(ModuleNotFoundError):
            found = getattr(importlib.import_module(place), name, None)
            if found is not None:
                return found
    raise ModuleNotFoundError(name)


class Writer:
    """A store of that version with sources, and the runs over them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.world = importlib.import_module("tests.support.world")
        self.model = importlib.import_module("compactor.model")
        self.given = given
        self.settings = _of("Settings").from_input(given)
        self.clock = self.world.ManualClock(BEGIN)
        self.store = self.world.MemoryStore(self.clock)
        self.store.endpoint_url = "http://127.0.0.1:9000"
        self.store.add_bucket("lake")
        self.originals: dict[tuple[str, str], bytes] = {}
        self.runs: list[str] = []
        self._records = itertools.count(1)

    def put(self, key: str, body: bytes, etag: str = "") -> None:
        """A source, as old as a source must be."""
        arrived = self.clock.now() - 2 * DAY
        given = {"etag": etag} if etag else {}
        one = self.store.seed("source", f"logs/{key}", body, last_modified=arrived, **given)
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
        found = _of("discover")(settings, store, now, committed=self._committed)
        if _had("ensure_asked"):
            _of("ensure_asked")(settings.state, store, now, deletes=True)
        _of("write_work")(found, settings, run_id, store)
        deadline = self.world.NoDeadline()
        for item in found.items:
            work = self.world.PartitionRun(
                item.partition, settings, store, self.clock, deadline, run_id
            )
            with suppress(self.crashed):
                self.world.record_partition(work, self.world.Counts())
        due = _of("find_due")(settings, store, self.clock.now())
        _of("write_due")(due, settings, run_id, store)
        for one in due:
            work = self.world.CleanUpRun(one.path, settings, store, self.clock, deadline, run_id)
            self.world.record_clean_up(work, self.world.CleanUpReceipt(one.path, run_id))
        _of("report")(_of("RunIdentity")(run_id, "2025-06-01T00:00:00Z"), settings, store)

    @property
    def crashed(self) -> type[BaseException]:
        """What ends a worker at once."""
        crashed: type[BaseException]
        crashed = importlib.import_module("tests.support.memory_store").Crashed
        return crashed

    def partition(self, path: str) -> Any:
        """A partition of the source."""
        return self.model.Partition("source", f"logs/{path}", path)

    def log(self, path: str) -> Any:
        """Its commit log."""
        return _of("CommitLog")(self.store, self.settings, self.partition(path))

    def _committed(self, partition: Any) -> Any:
        return _of("CommitLog")(self.store, self.settings, partition).load().committed

    def crash_before_publishing(self, *paths: str) -> None:
        """From now on a worker dies between the commit and the publication of such outputs."""

        def hook(call: Any) -> None:
            if call.name == "complete_upload" and any(f"/{path}" in call.key for path in paths):
                raise self.crashed

        self.store.hooks.before.append(hook)

    def crash_before_summing_up(self, *paths: str) -> None:
        """A worker dies before it can write a checkpoint."""

        def hook(call: Any) -> None:
            summed_up = call.key.endswith(".checkpoint.json.gz")
            if call.name == "create" and summed_up and any(f"/{one}" in call.key for one in paths):
                raise self.crashed

        self.store.hooks.before.append(hook)

    def lose_upload(self, path: str) -> None:
        """The bucket's lifecycle rule ends an upload."""
        uploads = self.store._buckets["lake"].uploads
        for name in [name for name, one in uploads.items() if f"/{path}" in one.key]:
            del uploads[name]

    def rows_commit(self, path: str) -> None:
        """A commit as the Spark job makes it: three rows and a rejected record."""
        example = importlib.import_module("tests.support.parquet_example").PARQUET
        self.put(f"{path}a.json", b'{"id": 0}\n{"id": 1}\n')
        self.put(f"{path}b.json", b'{"id": 2}\n{"id": "no number"}\n')
        (page,) = self.store.list_objects("source", f"logs/{path}")
        group = _of("make_group")(page, self.settings)
        source = f"s3://source/logs/{path}b.json"
        reason = 'column id is bigint, and does not take "no number"'
        line = {"source": source, "record": '{"id": "no number"}', "reason": reason}
        body = json.dumps(line).encode() + b"\n"
        state = self.settings.state.prefix
        rejects = f"{state}partitions/{path}rejects/{group.id}-0123456789abcdef.json"
        self.store.put("lake", rejects, body, content_type="application/x-ndjson")
        fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
        schema = {"type": "struct", "fields": fields}
        pin = {"version": 1, "schema": schema}
        name = f"{state}parquet-schemas/{1:020d}.json"
        self.store.create("lake", name, json.dumps(pin, indent=1).encode())
        key = f"compacted/{path}compacted-{group.id}.parquet"
        upload_id = self.store.create_upload("lake", key)
        part = self.store.upload_part("lake", key, upload_id, 1, example)
        kept = _of("Rejects")("lake", rejects, len(body), zlib.crc32(body), 1)
        digest = "89abcdef01234567"
        output = _of("Output")(
            bucket="lake",
            key=key,
            upload_id=upload_id,
            parts=(part,),
            size=len(example),
            crc32=zlib.crc32(example),
            plain_bytes=None,
            records=3,
            format=self.model.Format.PARQUET,
            compression=self.model.Compression.NONE,
            columnar=_of("Columnar")(4, 3, digest, digest, "gzip", json.dumps(schema), kept),
        )
        facts = _of("SliceFacts")(2)
        rows = tuple(_of("ManifestRow")(one, 0, 0, None, None, facts) for one in page)
        log = self.log(path)
        draft = _of("Commit")(
            sequence=0,
            commit_id=uuid.uuid4().hex,
            run_id=self.runs[-1],
            created_at=self.clock.now(),
            source_bucket="source",
            group_id=group.id,
            output=output,
            rows=rows,
        )
        _of("publish")(log.append(log.load(), draft), self.store)

    def take_back(self, path: str) -> None:
        """A published commit is undone, as ``compactor repair`` does it."""
        log = self.log(path)
        work = _of("Undoing")(self.store, self.settings.state, path, log, log.load().last)
        commit = next(iter(log.every_commit()))
        _of("undo")(commit, "an example", work, run_id="run-undo", now=self.clock.now())

    def pass_first(self, path: str) -> None:
        """The first commit of a partition was examined, and found sound."""
        *_, commit = self.log(path).every_commit()
        at = self.clock.now()
        record = _of("PassedRecord")(commit_id=commit.commit_id, at=at, by="compactor repair")
        _of("write_passed")(self.settings.state, path, commit.sequence, record, self.store)

    def save(self, name: str, commit: str) -> None:
        """Everything as one archive: ``index.json``, and the bytes of each line of it."""
        bodies: list[bytes] = []
        index: dict[str, Any] = {
            "written_by": commit,
            "now": self.clock.now(),
            "input": self.given,
            "runs": self.runs,
            "objects": [],
            "uploads": [],
            "originals": [],
            "unreadable": [
                [*where, reason.value]
                for where, reason in getattr(self.store, "unreadable", {}).items()
            ],
        }

        def keep(body: bytes) -> str:
            if body not in bodies:
                bodies.append(body)
            return f"{bodies.index(body):03d}"

        for bucket in ("lake", "source"):
            there = self.store._buckets[bucket]
            for key, one in sorted(there.objects.items()):
                line = {"bucket": bucket, "key": key, "etag": one.etag}
                line |= {"last_modified": one.last_modified, "content_type": one.content_type}
                line |= {"metadata": dict(getattr(one, "metadata", {})), "body": keep(one.body)}
                index["objects"].append(line)
            for upload_id, upload in there.uploads.items():
                parts = {number: keep(part.body) for number, part in upload.parts.items()}
                line = {"bucket": bucket, "key": upload.key, "upload_id": upload_id}
                line |= {"content_type": upload.content_type, "began": upload.began}
                line |= {"metadata": dict(getattr(upload, "metadata", {})), "parts": parts}
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
    """Sources of every kind that all versions take, under certain rules."""
    writer.put("json/a.json", writer.objects(3))
    writer.put("json/b.json", writer.objects(2))
    writer.put("json/c.json", b"")
    writer.put("csv/a.csv", writer.rows("id,name,value", 3))
    writer.put("csv/b.csv", writer.rows("id,name,value", 2))
    writer.put("csv/c.csv", writer.rows("id,other,value", 2))
    writer.put("gzip/a.log.gz", gzip.compress(writer.lines(3), mtime=0))
    writer.put("gzip/b.log.gz", gzip.compress(writer.lines(2), mtime=0))
    broken = gzip.compress(b"2025-05-30T12:00:00Z INFO never read\n" * 40, mtime=0)
    writer.put("gzip/broken.log.gz", broken[:-9])
    for name in ("1", "2"):
        writer.put(f"trail/1_CloudTrail_us-east-1_{name}.json.gz", writer.trail(2))
    writer.put("copies/large.log", writer.lines(1_200, "the same words in every line"))
    writer.put("copies/small-1.log", writer.lines(2))
    writer.put("copies/small-2.log", writer.lines(2))


def write_first(writer: Writer) -> None:
    """What the first version that anybody used can do: the log, and clean-up."""
    fill(writer)
    writer.run("run-1")
    writer.clock.advance(DAY)
    writer.put("json/d.json", writer.objects(2))
    writer.put("json/e.json", writer.objects(2))
    # Headers that later rules doubt: clean-up leaves these sources until they are examined.
    writer.put("csv/d.csv", writer.rows("id,name,value", 2))
    writer.put("csv/e.csv", writer.rows("id,name,value", 1))
    writer.rows_commit("rows/")
    writer.run("run-2")
    writer.clock.advance(7 * DAY - 1)
    end_before_publishing(writer)


def write_second(writer: Writer) -> None:
    """And with it all that followed: what came again, what was undone, what was left alone."""
    fill(writer)
    fill_what_is_left_alone(writer)
    for path in ("Größe & mehr", "commits", "undone"):
        writer.put(f"{path}/a.json", writer.objects(2))
        writer.put(f"{path}/b.json", writer.objects(2))
    writer.run("run-1")
    writer.clock.advance(DAY)
    writer.take_back("undone/")
    fill_what_comes_again(writer)
    writer.rows_commit("rows/")
    writer.crash_before_summing_up("trail/")
    writer.run("run-2")
    writer.pass_first("csv/")
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
    denied = importlib.import_module("compactor.model").QuarantineReason.ACCESS_DENIED
    writer.store.unreadable["source", "logs/denied/c.log"] = denied


def fill_what_comes_again(writer: Writer) -> None:
    """The same content under another ETag and at another time, other content, and more."""
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


def main(commit: str, name: str) -> None:
    """Write one fixture."""
    given = {
        "s3_source_uri": "s3://source/logs/",
        "s3_destination_uri": "s3://lake/compacted/",
        "depth": 1,
        "clean_up": "delete",
        "retention_days": 7,
        "small_object_bytes": 65_536,
    }
    writer = Writer(given)
    (write_second if _had("undo") else write_first)(writer)
    writer.save(name, commit)


if __name__ == "__main__":
    main(*sys.argv[1:])
