"""Where a right is missing, all that are missing are named together, and asking writes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import QuarantineReason
from compactor.probe.rights import missing_rights
from compactor_cli.commands import main, run
from compactor_cli.one_run import EndedRun, RunEnd
from tests.support.examples import settings
from tests.support.memory_store import Call
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, refusal
from tests.support.world import World

SOURCE, DESTINATION, STATE = (
    "s3://source/logs/",
    "s3://lake/compacted/",
    "s3://lake/_compactor/compacted/",
)
READS = {
    ("list_objects", "logs/"): f"s3:ListBucket on {SOURCE}",
    ("list_level", "compacted/"): f"s3:ListBucket on {DESTINATION}",
    ("head", "compacted/"): f"s3:GetObject on {DESTINATION}",
    ("list_level", "_compactor/"): f"s3:ListBucket on {STATE}",
    ("head", "_compactor/"): f"s3:GetObject on {STATE}",
}
WRITES = {
    ("create_upload", "compacted/"): f"s3:PutObject on {DESTINATION}",
    ("abort_upload", "compacted/"): f"s3:AbortMultipartUpload on {DESTINATION}",
    ("create_upload", "_compactor/"): f"s3:PutObject on {STATE}",
    ("abort_upload", "_compactor/"): f"s3:AbortMultipartUpload on {STATE}",
}
ALL = READS | WRITES


def a_world(*refused: tuple[str, str], said: str = "403 AccessDenied") -> World:
    """A source, and a role that may not do these requests below these prefixes."""
    world = World()
    world.put("a.json", b"{}\n")
    world.store.hooks.before.append(refusing(*refused, said=said))
    return world


def refusing(*refused: tuple[str, str], said: str) -> Callable[[Call], None]:
    def before(call: Call) -> None:
        if any(call.name == name and call.key.startswith(prefix) for name, prefix in refused):
            raise InvalidInput("permission", said, "a role that allows this request")

    return before


@pytest.mark.parametrize("refused", ALL, ids="-".join)
def test_each_right_that_is_missing_alone_is_reported_alone(refused):
    world = a_world(refused)
    assert missing_rights(world.settings, world.store, writes=True) == [ALL[refused]]


def test_rights_that_are_missing_together_are_reported_together():
    refused = [one for one in ALL if one[0] in ("list_objects", "head", "create_upload")]
    world = a_world(*refused)
    told = missing_rights(world.settings, world.store, writes=True)
    assert sorted(told) == sorted(ALL[one] for one in refused)


@pytest.mark.parametrize(
    ("reason", "told"),
    [("access_denied", [f"s3:GetObject on {SOURCE}"]), ("archived_access_tier", [])],
)
def test_a_source_is_read_where_sources_may_be_listed(reason, told):
    world = a_world()
    (key,) = world.store.contents("source")
    world.store.unreadable["source", key] = QuarantineReason(reason)
    assert missing_rights(world.settings, world.store, writes=False) == told


def test_the_right_that_s3_names_is_reported_and_not_the_one_that_was_thought_of():
    said = "403 AccessDenied: not authorized to perform: kms:GenerateDataKey on resource: k"
    world = a_world(("create_upload", "compacted/"), said=said)
    told = missing_rights(world.settings, world.store, writes=True)
    assert told == [f"kms:GenerateDataKey on {DESTINATION}"]


def test_a_role_with_all_rights_lacks_none_and_nothing_is_left():
    world = a_world()
    before = {bucket: world.store.contents(bucket) for bucket in ("source", "lake")}
    assert missing_rights(world.settings, world.store, writes=True) == []
    assert {bucket: world.store.contents(bucket) for bucket in before} == before
    assert world.store.unfinished_uploads("lake") == {}


def test_without_leave_to_write_only_reads_are_asked():
    world = a_world(*ALL)
    asked = len(world.store.calls)
    missing_rights(world.settings, world.store, writes=False)
    names = {call.name for call in world.store.calls[asked:]}
    assert names <= {"list_objects", "list_level", "head", "read_range"}


def test_other_errors_are_no_missing_rights():
    world = a_world()

    def away(_: Call) -> None:
        raise TransientStoreError("nobody answers")

    world.store.hooks.before.append(away)
    assert missing_rights(world.settings, world.store, writes=True) == []


def test_what_events_name_need_not_be_listed():
    world = a_world(("list_objects", "logs/"))
    given = settings(listing="events:table/logs")
    assert missing_rights(given, world.store, writes=False) == []


def test_a_single_missing_right_is_reported_by_its_error_alone(s3, capsys):
    s3.answer = refused_where(lambda asked: asked.path.startswith("/my-logs"))
    line = ended(capsys, s3, "plan")
    assert "not allowed: list s3://my-logs/raw/" in line
    assert "permissions are missing" not in line


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_command_that_meets_one_missing_right_names_all(s3, capsys, name):
    s3.always(refusal(403, "AccessDenied", "Access Denied"))
    line = ended(capsys, s3, name)
    reads = "s3:ListBucket on s3://my-logs/raw/, s3:ListBucket on s3://my-lake/compacted/"
    assert "not allowed: list s3://my-logs/raw/: 403" in line
    assert f" permissions are missing: {reads}" in line
    assert ("s3:PutObject on s3://my-lake/compacted/" in line) == (name == "run")


def test_a_run_that_fails_in_its_partitions_for_a_right_names_all_that_are_missing(
    monkeypatch, capsys
):
    refused = [("create_upload", "compacted/"), ("create_upload", "_compactor/")]
    world = a_world(*refused)
    cause = "2026/01/02/: InvalidInput not allowed: create upload s3://lake/compacted/x: 403"
    end = RunEnd("FAILED", "PartitionsFailed", cause, 1.0)
    monkeypatch.setattr(run, "open_store", lambda *_: world.store)
    monkeypatch.setattr(run, "execute_here", lambda *_: EndedRun("run-1", end))
    assert main(["run", SOURCE, DESTINATION]) == 1
    assert capsys.readouterr().err == (
        f"compactor: PartitionsFailed: {cause}; 2 permissions are missing:"
        f" {', '.join(ALL[one] for one in refused)}\n"
    )


def ended(capsys: pytest.CaptureFixture[str], s3: ScriptedS3, name: str) -> str:
    """The one line with which a command ends as a wrong input."""
    words = ("s3://my-logs/raw/", "s3://my-lake/compacted/", "--endpoint-url", s3.url)
    assert main([name, *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


def refused_where(is_refused: Callable[[Asked], bool]) -> Callable[[Asked], Answer]:
    empty = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"

    def answer(asked: Asked) -> Answer:
        if is_refused(asked):
            return refusal(403, "AccessDenied", "Access Denied")
        return Answer(200, empty) if asked.method == "GET" else Answer(404)

    return answer
