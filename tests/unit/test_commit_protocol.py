"""Commit, publish and replace: one commit a source, one output a commit, whatever gets lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import AlreadyExists, IntegrityError, TransientStoreError, UploadLost
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import SourceObject
from compactor.outputs import group
from compactor.outputs.publish import publish, withdraw
from compactor.outputs.verify import check_commit
from tests.support.examples import PARTITION
from tests.support.memory_bucket import Bucket
from tests.support.memory_store import Call, Crashed
from tests.support.world import LOG_LINE, World


def world_of(records: int = 2, **given: object) -> World:
    world = World(**given)
    for number in range(records):
        world.add(f"{number}.json", '{{"id": "{}"}}')
    return world


def log_of(world: World) -> CommitLog:
    return CommitLog(world.store, world.settings, PARTITION)


def lose_every_upload(world: World) -> None:
    for upload_id, key in world.store.unfinished_uploads("lake").items():
        world.store.abort_upload("lake", key, upload_id)


def waiting(world: World) -> Commit:
    """Run up to a commit whose upload nobody has completed yet."""
    world.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    (commit,) = log_of(world).every_commit()
    return commit


def once(world: World, name: str, action: Callable[[], object], *, prefix: str = "") -> None:
    """Act before the first request of this name."""
    acted = False

    def hook(call: Call) -> None:
        nonlocal acted
        if call.name == name and call.key.startswith(prefix) and not acted:
            acted = True
            action()

    world.store.hooks.before.append(hook)


# Publishing, and making sure that nobody can.


def test_publishing_shows_whether_it_was_needed() -> None:
    world = world_of()
    commit = waiting(world)
    assert publish(commit, world.store)
    assert not publish(commit, world.store)
    assert check_commit(commit, world.store) == 6
    assert not publish(replace(commit, output=None), world.store)


def test_what_was_withdrawn_can_never_be_published() -> None:
    world = world_of()
    commit = waiting(world)
    assert withdraw(commit, world.store)
    assert world.store.unfinished_uploads("lake") == {}
    with pytest.raises(UploadLost):
        publish(commit, world.store)
    assert not withdraw(replace(commit, output=None), world.store)


def test_what_is_published_cannot_be_withdrawn() -> None:
    world = world_of()
    commit = waiting(world)
    publish(commit, world.store)
    assert not withdraw(commit, world.store)
    assert check_commit(commit, world.store) == 6


@pytest.mark.parametrize("attempt", [publish, withdraw])
@pytest.mark.parametrize("longer", [0, 1])
@pytest.mark.parametrize("checked", [True, False])
def test_another_object_at_the_outputs_key_stops_publication(
    attempt: Callable[..., bool], longer: int, checked: bool
) -> None:
    world = world_of()
    commit = waiting(world)
    output = commit.output
    assert output is not None
    if not checked:
        # As for a server-side copy, whose checksum nobody knows: its size alone tells.
        commit = replace(commit, output=replace(output, crc32=None))
        longer = 1
    body = b"x" * (output.size + longer)
    world.store.seed("lake", output.key, body)
    with pytest.raises(IntegrityError, match="its commit says"):
        attempt(commit, world.store)
    assert world.store.contents("lake")[output.key] == body


# Committing.


def test_a_writer_whose_answer_was_lost_knows_its_own_commit_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    create = world.store.create

    def retried(bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        """The first try arrives, its answer does not; the client tries again by itself."""
        create(bucket, key, body, content_type=content_type)
        raise AlreadyExists(key)

    monkeypatch.setattr(world.store, "create", retried)
    receipt = world.run()
    monkeypatch.undo()
    assert (receipt.status, receipt.counts.conflicts) == ("done", 0)
    assert (receipt.counts.objects_in, receipt.counts.objects_out) == (2, 1)
    assert world.store.unfinished_uploads("lake") == {}
    world.must_be_finished()


def lose_answer(world: World, name: str, part: str, when: str) -> None:
    """Nobody answers from the first request on that has this name and this part of a key."""
    hooks = world.store.hooks.before if when == "before" else world.store.hooks.after

    def lose(call: Call) -> None:
        if call.name == name and part in call.key:
            raise TransientStoreError(f"no answer: {call}")

    hooks.append(lose)


def test_an_upload_whose_entry_may_have_been_written_is_kept_and_published_by_the_next_run() -> (
    None
):
    world = world_of()
    lose_answer(world, "create", "/commits/", "after")
    with pytest.raises(TransientStoreError):
        world.run()
    (upload_id,) = world.store.unfinished_uploads("lake")
    world.store.hooks.clear()
    assert world.run().status == "done"
    (commit,) = log_of(world).every_commit()
    assert commit.output is not None
    assert (commit.output.upload_id, world.store.count("create_upload")) == (upload_id, 1)
    world.must_be_finished()


def test_an_upload_whose_check_did_not_come_to_an_end_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()

    def unanswered(*_: object) -> None:
        raise TransientStoreError("no answer")

    monkeypatch.setattr(group, "check_pending", unanswered)
    with pytest.raises(TransientStoreError):
        world.run()
    assert world.store.count("create_upload") == 1
    assert world.store.unfinished_uploads("lake") == {}


def test_a_commit_that_shares_no_source_with_the_winner_takes_the_next_number() -> None:
    world = world_of()

    def other_run() -> None:
        world.add("z.log", LOG_LINE)
        world.settings = replace(world.settings, include=("*.log",))
        world.run()
        world.settings = replace(world.settings, include=())

    once(world, "create", other_run, prefix="_compactor/")
    receipt = world.run()
    assert receipt.counts.conflicts == 0
    assert [one.sequence for one in log_of(world).every_commit()] == [2, 1]
    world.must_be_finished()


def test_a_group_that_another_run_committed_after_the_plan_is_not_committed_again() -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.add("b.log", LOG_LINE)

    def other_run() -> None:
        # Its group of b.log is another one, and shares nothing with the first group planned.
        world.add("c.log", LOG_LINE)
        world.settings = replace(world.settings, include=("*.log",))
        world.run()
        world.settings = replace(world.settings, include=())

    once(world, "create", other_run, prefix="_compactor/")
    world.store.hooks.after.append(world.check)
    receipt = world.run()
    assert (receipt.status, receipt.counts.conflicts) == ("done", 1)
    assert world.store.unfinished_uploads("lake") == {}
    world.must_be_finished()


# Replacing.


def test_of_two_workers_that_repair_concurrently_one_gets_its_commit_in() -> None:
    world = world_of()
    waiting(world)
    lose_every_upload(world)
    world.store.hooks.after.append(world.check)
    second = world.settings.layout.commit(PARTITION.path, 2)[1]
    once(world, "create", world.run, prefix=second)
    receipt = world.run()
    assert (receipt.status, receipt.counts.conflicts) == ("done", 1)
    assert [one.sequence for one in log_of(world).every_commit()] == [2]
    assert world.store.unfinished_uploads("lake") == {}
    world.must_be_finished()


def test_a_repair_counts_as_such() -> None:
    world = world_of()
    waiting(world)
    assert world.run().counts.repaired == 1
    assert world.run().counts.repaired == 0
    lost = world_of()
    waiting(lost)
    lose_every_upload(lost)
    assert lost.run().counts.repaired == 1


# Checkpoints.


def test_no_checkpoint_hides_a_commit_that_waits_for_its_output() -> None:
    world = world_of()
    commit = waiting(world)
    log = log_of(world)
    state = log.load()
    before = world.store.count("create")
    log.checkpoint(state)
    assert world.store.count("create") == before
    publish(commit, world.store)
    state.mark_published(commit)
    log.checkpoint(state)
    assert world.store.count("create") == before + 1
    again = log.load()
    assert (again.last, again.checkpoint, again.unpublished) == (1, 1, {})
    assert again.committed == state.committed
    log.checkpoint(again)
    assert world.store.count("create") == before + 1, "nothing is new"


def test_two_checkpoints_of_the_same_entries_are_the_same() -> None:
    world = world_of()
    world.run()
    (key,) = (key for key in world.store.contents("lake") if "checkpoint" in key)
    body = world.store.contents("lake")[key]
    world.store.remove("lake", key)
    log = log_of(world)
    state = log.load()
    for commit in list(state.unpublished.values()):
        state.mark_published(commit)
    log.checkpoint(state)
    log.checkpoint(state)
    assert world.store.contents("lake")[key] == body


# A key that is named twice.


def test_an_entry_that_names_a_key_twice_is_not_written() -> None:
    world = world_of()
    commit = waiting(world)
    first, second = commit.rows
    other = second._replace(source=replace(second.source, key=first.source.key))
    log = log_of(world)
    state = log.load()
    before = world.store.contents("lake")
    with pytest.raises(IntegrityError, match=r"0\.json twice: nothing is written"):
        log.append(state, replace(commit, rows=(first, other)))
    assert world.store.contents("lake") == before


def test_a_store_that_lists_a_source_twice_doubles_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of()
    page = Bucket.page

    def repeats(self: Bucket, *place: Any) -> tuple[list[SourceObject], bool]:
        listed, more = page(self, *place)
        return [one for one in listed for _ in range(1 + (self.name == "source"))], more

    monkeypatch.setattr(Bucket, "page", repeats)
    with pytest.raises(IntegrityError, match="does not list keys in order, each once"):
        world.run()
    assert not [key for key in world.store.contents("lake") if "/runs/" not in key]
