"""``compactor doctor``: what a store honours, and how the command ends."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from compactor.ports import ObjectStore
from compactor_cli import commands as cli
from compactor_cli.commands import clean_up, doctor
from tests.support.cleaning import left, old_world
from tests.support.memory_store import MemoryStore
from tests.support.server_differences import Condition
from tests.support.world import World

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("lake")
    store.endpoint_url = "http://127.0.0.1:9000"
    return store


@pytest.fixture
def command(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setattr(doctor, "open_store", lambda *_: store)

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(["doctor", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_substitutes_of_a_store_are_named(command: Command, store: MemoryStore) -> None:
    store.ignores = {Condition.WHOLE_CHECKSUM, Condition.DELETE_MANY}
    code, out, err = command("s3://lake/compacted/")
    assert (code, err) == (0, "")
    assert "s3://lake/_compactor/compacted/probes/" in out
    assert "each output is read back" in out
    assert "one by one" in out
    assert store.contents("lake") == {}


def test_the_document_has_what_the_store_can_be_relied_on_to_do(
    command: Command, store: MemoryStore
) -> None:
    store.ignores = {Condition.DELETE_MANY}
    code, out, _ = command("s3://lake/", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["safe"]
    assert document["state"] == "s3://lake/_compactor/"
    assert document["traits"] == {"copies": False, "checks_crc32": True, "deletes": "single"}


def test_a_store_that_no_run_may_trust_fails_the_command_by_one_line(
    command: Command, store: MemoryStore
) -> None:
    store.ignores = {Condition.CREATE}
    code, out, err = command("s3://lake/compacted/", "--json")
    assert code == 1
    assert not json.loads(out)["safe"]
    (line,) = err.splitlines()
    assert "ignores If-None-Match on PutObject" in line


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> World:
    """Past retention, at a store that is not AWS; one source was written again."""
    world = old_world()
    world.store.endpoint_url = "http://127.0.0.1:9000"
    world.put("a.json", b'{"id": "written after"}\n')

    def open_store(endpoint_url: str | None, bucket: str | None = None) -> ObjectStore:
        return world.store

    monkeypatch.setattr(clean_up, "open_store", open_store)
    monkeypatch.setattr(clean_up, "SystemClock", lambda: world.clock)
    return world


WHERE = ["s3://source/logs/", "s3://lake/compacted/", "--delete-after", "7d"]


def test_clean_up_asks_before_it_deletes_at_a_store_that_ignores_etags(old: World) -> None:
    old.store.ignores = {Condition.DELETE_MANY}
    assert cli.main(["clean-up", *WHERE, "--yes"]) == 0
    assert left(old) == ["a.json"]


def test_a_dry_run_asks_nothing(old: World) -> None:
    before = old.store.count("put", "create", "create_upload")
    assert cli.main(["clean-up", *WHERE, "--dry-run"]) == 0
    assert old.store.count("put", "create", "create_upload") == before


def test_clean_up_at_a_store_that_no_run_may_trust_deletes_nothing(
    old: World, capsys: pytest.CaptureFixture[str]
) -> None:
    old.store.ignores = {Condition.CREATE}
    assert cli.main(["clean-up", *WHERE, "--yes"]) == 2
    assert left(old) == ["a.json", "b.json"]
    assert "If-None-Match on PutObject" in capsys.readouterr().err


def test_sources_stay_at_a_store_without_conditional_deletes(
    old: World, capsys: pytest.CaptureFixture[str]
) -> None:
    old.store.ignores = {Condition.DELETE_MANY, Condition.DELETE_ONE}
    assert cli.main(["clean-up", *WHERE, "--yes"]) != 0
    assert left(old) == ["a.json", "b.json"]
    assert "no source is deleted" in "".join(capsys.readouterr())
