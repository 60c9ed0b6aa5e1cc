"""The commands against an embedded S3; all but `run` without the engine."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import time

import pytest

from compactor.clock import NoDeadline, SystemClock
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.support.audit import Places, Proof, audit

PARTITIONS, EACH, ROWS = 6, 4, 3
_names = itertools.count(1)


class Lake:
    """Partitions of JSON lines, plain and gzip, in a bucket of their own; six, if not told."""

    def __init__(self, s3: EmbeddedS3, partitions: int = PARTITIONS) -> None:
        self.bucket = f"cli-{next(_names)}"
        self.uris = [f"s3://{self.bucket}/logs/", f"s3://{self.bucket}/compacted/"]
        self.endpoint = ["--endpoint-url", s3.endpoint_url]
        self.client = make_client(s3.endpoint_url)
        self.plain: dict[str, bytes] = {}
        long_ago = time.time() - 7 * 86_400
        seeds = []
        for p, n in itertools.product(range(partitions), range(EACH)):
            # Without a newline at the end: restoring must undo the one that is added.
            body = b"\n".join(b'{"id":"%d-%d-%d"}' % (p, n, row) for row in range(ROWS))
            key = f"logs/p{p}/{n}.json" + ".gz" * (n % 2)
            self.plain[key] = body
            seeds.append(SeedObject(key, gzip.compress(body, mtime=0) if n % 2 else body, long_ago))
        s3.seed(self.bucket, seeds)

    @property
    def settings(self) -> Settings:
        source, destination = self.uris
        return Settings.from_input(
            {"s3_source_uri": source, "s3_destination_uri": destination, "depth": 1}
        )

    def compact(self) -> None:
        store, settings, clock = (
            S3Store(make_client(self.endpoint[1])),
            self.settings,
            SystemClock(),
        )
        found = discover(settings, store, clock.now())
        write_work(found, settings, "by-hand", store)
        for item in found.partitions:
            run = PartitionRun(item, settings, store, clock, NoDeadline(), "by-hand")
            compact_partition(run, Counts())

    def keys(self, prefix: str = "") -> dict[str, str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return {e["Key"]: e["ETag"] for page in pages for e in page.get("Contents", ())}

    def read(self, key: str) -> bytes:
        return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def write(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body)

    def prove(self) -> Proof:
        settings = self.settings
        places = Places(settings.source.root, settings.destination, settings.state)
        return audit(places, self.client)


@pytest.fixture
def lake(s3):
    return Lake(s3)


@pytest.fixture
def compacted(lake):
    lake.compact()
    return lake


@pytest.fixture
def command(capsys):
    """Runs one command; returns exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main([*words])
        return code, *capsys.readouterr()

    return run


# plan


def test_plan_shows_groups_and_writes_nothing(lake, command):
    before = lake.keys()
    code, out, err = command("plan", *lake.uris, *lake.endpoint, "--depth", "1", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    # Plain and gzip objects never share an output.
    assert document["totals"]["groups"] == 2 * PARTITIONS
    assert document["totals"]["objects"] == PARTITIONS * EACH
    assert [p["path"] for p in document["partitions"]] == [f"p{p}/" for p in range(PARTITIONS)]
    assert lake.keys() == before


def test_plan_counts_what_it_would_skip_by_reason(lake, command):
    lake.write("logs/p0/young.json", b"{}")
    lake.write("logs/stray.json", b"{}")
    words = ("--depth", "1", "--exclude", "*.gz")
    code, out, _ = command("plan", *lake.uris, *lake.endpoint, *words)
    assert code == 0
    assert "skipped: 1 object, too_young, such as logs/p0/young.json" in out
    assert f"skipped: {PARTITIONS * EACH // 2} objects, excluded" in out
    assert "outside every partition: 1 object such as logs/stray.json" in out


def test_plan_over_a_committed_result_is_empty(compacted, command):
    words = ("--depth", "1", "--json")
    code, out, _ = command("plan", *compacted.uris, *compacted.endpoint, *words)
    assert code == 0
    assert json.loads(out)["totals"] == {
        "partitions": PARTITIONS,
        "groups": 0,
        "objects": 0,
        "bytes": 0,
        "skipped": {"already_committed": PARTITIONS * EACH},
    }


def test_plan_lists_oversized_partitions(lake, command):
    words = ("--depth", "1", "--lambda-max-bytes", "0")
    code, out, _ = command("plan", *lake.uris, *lake.endpoint, *words)
    assert code == 0
    assert out.count("for Spark: p") == PARTITIONS


# verify


def test_verify_finds_a_sound_destination_sound(compacted, command):
    code, out, err = command("verify", *compacted.uris, *compacted.endpoint, "--sources")
    assert (code, err) == (0, "")
    outputs, sources = 2 * PARTITIONS, PARTITIONS * EACH
    assert f"sound: {outputs} commits, {outputs} outputs, {sources} sources" in out
    assert f"{sources} equal, 0 changed" in out


@pytest.mark.parametrize("tamper", [bytes.swapcase, lambda b: b[:-1], lambda b: b + b"{}\n"])
def test_verify_finds_every_tampered_output(compacted, command, tamper):
    outputs = compacted.keys("compacted/")
    for key in outputs:
        compacted.write(key, tamper(compacted.read(key)))
    code, out, err = command("verify", *compacted.uris, *compacted.endpoint, "--json")
    assert code == 1
    assert len(json.loads(out)["findings"]) == len(outputs)
    assert err == f"compactor: IntegrityError: {len(outputs)} findings\n"


def test_verify_finds_a_missing_output(compacted, command):
    gone = next(iter(compacted.keys("compacted/")))
    compacted.client.delete_object(Bucket=compacted.bucket, Key=gone)
    code, _, err = command("verify", *compacted.uris, *compacted.endpoint)
    assert code == 1
    assert f"{gone} is gone" in err


def test_verify_finds_an_object_that_no_commit_names(compacted, command):
    compacted.write("compacted/p0/copied-by-hand.json", b"{}\n")
    code, _, err = command("verify", *compacted.uris, *compacted.endpoint)
    assert code == 1
    assert "compacted/p0/copied-by-hand.json: not named by any commit" in err


def test_verify_finds_a_removed_and_a_damaged_commit(compacted, command):
    state = "_compactor/compacted/partitions/"
    name = f"commits/{1:020d}.json.gz"
    compacted.client.delete_object(Bucket=compacted.bucket, Key=f"{state}p0/{name}")
    compacted.write(f"{state}p1/{name}", b"no commit")
    code, _, err = command("verify", *compacted.uris, *compacted.endpoint)
    assert code == 1
    assert "p0/: log entry 1 is missing" in err
    assert f"{state}p1/{name} is damaged" in err
    assert "compactor: IntegrityError: 2 findings" in err


def test_verify_finds_a_source_in_two_commits(compacted, command):
    log = "_compactor/compacted/partitions/p0/commits/"
    entry = json.loads(gzip.decompress(compacted.read(f"{log}{1:020d}.json.gz")))
    entry |= {"sequence": 3, "output": None}
    compacted.write(f"{log}{3:020d}.json.gz", gzip.compress(json.dumps(entry).encode(), mtime=0))
    code, _, err = command("verify", *compacted.uris, *compacted.endpoint)
    assert code == 1
    assert "logs/p0/0.json is also in p0/ commit" in err
    assert not compacted.prove().holds


def test_verify_refuses_a_destination_without_state(lake, command):
    code, _, err = command("verify", *lake.uris, *lake.endpoint)
    assert code == 2
    assert "compactor: there is no state of a run at s3://" in err


def test_verify_reports_a_source_from_the_wrong_place(compacted, command):
    words = (f"s3://{compacted.bucket}/other/", compacted.uris[1])
    code, _, err = command("verify", *words, *compacted.endpoint)
    assert code == 2
    assert "expected the source of these outputs" in err


def test_verify_counts_sources_that_changed_since_as_such(compacted, command):
    compacted.write("logs/p0/0.json", b'{"id":"new"}')
    code, out, _ = command("verify", *compacted.uris, *compacted.endpoint, "--sources")
    assert code == 0
    assert "1 changed, 0 deleted by clean-up, 0 missing" in out


# restore


def test_restore_gives_back_every_source_byte_for_byte(compacted, command, tmp_path):
    keys = [*compacted.plain]
    for key in keys:
        compacted.client.delete_object(Bucket=compacted.bucket, Key=key)
    words = (compacted.uris[1], *keys, "-o", str(tmp_path), "--json")
    code, out, err = command("restore", *words, *compacted.endpoint)
    assert (code, err) == (0, "")
    restored = {one["key"]: tmp_path / one["path"] for one in json.loads(out)}
    contents = {key: path.read_bytes() for key, path in restored.items()}
    # What was compressed is compressed again, and its name says so.
    assert {key for key in contents if contents[key][:2] == b"\x1f\x8b"} == {
        key for key in contents if key.endswith(".gz")
    }
    plain = {
        key: gzip.decompress(body) if key.endswith(".gz") else body
        for key, body in contents.items()
    }
    assert plain == compacted.plain
    assert all(path == tmp_path / key for key, path in restored.items())
    assert not [*tmp_path.rglob("*.partial")]


def test_restore_writes_one_source_to_standard_output(compacted, capfdbinary):
    for key in ("logs/p3/0.json", "logs/p5/1.json.gz"):
        assert main(["restore", compacted.uris[1], key, *compacted.endpoint]) == 0
        assert capfdbinary.readouterr() == (compacted.plain[key], b"")


def test_restore_names_a_key_that_no_commit_has(compacted, command, tmp_path):
    keys = ("logs/p0/0.json", "logs/p0/none.json")
    words = (compacted.uris[1], *keys, "-o", str(tmp_path))
    code, out, err = command("restore", *words, *compacted.endpoint)
    assert (code, out) == (2, "")
    assert err.startswith("compactor: InvalidInput: KEY: 'logs/p0/none.json'")
    assert not [*tmp_path.iterdir()]


def test_restore_refuses_a_damaged_output_and_leaves_nothing(compacted, command, tmp_path):
    for key in compacted.keys("compacted/p2/"):
        compacted.write(key, compacted.read(key).swapcase())
    words = (compacted.uris[1], "logs/p2/0.json", "-o", str(tmp_path))
    code, _, err = command("restore", *words, *compacted.endpoint)
    assert code == 1
    assert "IntegrityError: CRC32 of logs/p2/0.json" in err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


# the proof


def test_the_proof_holds_for_a_sound_destination(compacted):
    proof = compacted.prove()
    records = PARTITIONS * EACH * ROWS
    assert proof.holds, proof.findings
    assert proof.line == (
        f"proof: {records} of {records} records of {PARTITIONS * EACH} sources are in exactly"
        f" one of {2 * PARTITIONS} outputs"
    )


def test_the_proof_fails_when_a_record_is_lost_doubled_or_in_another_partition(compacted):
    one, other = "compacted/p0/", "compacted/p1/"
    key = next(key for key in compacted.keys(one) if key.endswith(".json"))
    body = compacted.read(key)
    lines = body.splitlines(keepends=True)
    stranger = next(key for key in compacted.keys(other) if key.endswith(".json"))
    for changed in (b"".join(lines[1:]), body + lines[0], compacted.read(stranger)):
        compacted.write(key, changed)
        proof = compacted.prove()
        assert not proof.holds
        assert proof.line.startswith("NOT PROVEN: ")
        assert proof.findings
    compacted.write(key, body)
    assert compacted.prove().holds


def test_the_proof_fails_when_there_is_an_object_that_no_commit_names(compacted):
    compacted.write("compacted/p0/stray.json", b'{"id":"stray"}\n')
    assert "without a commit" in compacted.prove().findings[0]


def test_the_proof_fails_when_nothing_was_compacted(lake):
    assert not lake.prove().holds


# run


def test_run_compacts_and_a_second_run_changes_nothing(lake, command, tmp_path):
    words = [*lake.uris, *lake.endpoint, "--depth", "1", "--workers", "2"]
    code, out, err = command("run", *words, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["status"] == "SUCCEEDED"
    summary = document["summary"]
    assert (summary["partitions"], summary["objects_before"]) == (PARTITIONS, PARTITIONS * EACH)
    assert (summary["objects_after"], summary["skipped"]) == (2 * PARTITIONS, {})
    assert lake.prove().holds
    outputs = lake.keys("compacted/")

    code, out, _ = command("run", *words, "--report-dir", str(tmp_path / "new"))
    assert code == 0
    assert f"left alone: {PARTITIONS * EACH} objects, already_committed" in out
    assert lake.keys("compacted/") == outputs

    state = ["--state-uri", f"s3://{lake.bucket}/_compactor/compacted/", *lake.endpoint]
    code, out, _ = command("runs", "show", *state, "--json")
    assert (code, json.loads(out)["report"]) == (
        0,
        json.loads((tmp_path / "new/report.json").read_bytes()),
    )
    assert "Nothing to compact" in (tmp_path / "new/report.html").read_text()


def test_run_takes_the_input_of_the_state_machine_and_ends_as_it_does(lake, command, tmp_path):
    log = "_compactor/compacted/partitions/p2/commits/"
    lake.write(f"{log}{1:020d}.json.gz", b"no commit")
    given = lake.settings.to_dict()
    path = tmp_path / "input.json"
    path.write_text(json.dumps(given))
    code, out, err = command("run", "--input", str(path), *lake.endpoint, "--json")
    assert code == 1
    assert json.loads(out)["error"] == "PartitionsFailed"
    assert err.startswith("compactor: PartitionsFailed: p2/: ")
    assert err.count("\n") == 1
    # The other partitions are done.
    assert len(lake.keys("compacted/")) == 2 * (PARTITIONS - 1)


def test_run_is_refused_with_exit_code_2_when_discovery_refuses_its_input(compacted, command):
    code, out, err = command("run", *compacted.uris, *compacted.endpoint, "--depth", "0")
    assert (code, out) == (2, "")
    assert err.startswith("compactor: InvalidInput: depth: 0 is not accepted; expected")
    assert err.count("\n") == 1


def test_json_is_all_there_is_on_standard_output(compacted):
    words = ["verify", *compacted.uris, *compacted.endpoint, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "compactor_cli", *words],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert json.loads(done.stdout)["findings"] == []
    assert done.stderr == b""
