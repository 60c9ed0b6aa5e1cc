from __future__ import annotations

import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor.log.encoding import encode_commit
from compactor.log.entries import Commit
from compactor.log.log_reader import logs_for_key
from compactor.settings.uris import S3Uri
from compactor_cli.commit_logs import all_logs
from tests.support.memory_store import ManualClock, MemoryStore

STATE = S3Uri("lake", "_compactor/compacted/")


def store_with(*paths: str) -> MemoryStore:
    store = MemoryStore(ManualClock())
    store.add_bucket("lake")
    for path in paths:
        key = f"{STATE.prefix}partitions/{path}commits/{1:020d}.json.gz"
        store.seed("lake", key, b"entry", last_modified=0.0)
    return store


def test_logs_are_found_without_knowing_the_partitions():
    store = store_with("", "a/", "a/b/", "a/commits/")
    assert [log.path for log in all_logs(STATE, store)] == ["", "a/", "a/b/", "a/commits/"]


def test_without_any_log_the_state_is_named_as_the_mistake():
    with pytest.raises(InvalidInput, match="s3_state_uri"):
        all_logs(STATE, store_with())


@pytest.mark.parametrize(
    ("key", "paths"),
    [
        ("logs/2026/01/02/x.json", ["2026/01/02/", ""]),
        ("2026/01/02/x.json", ["2026/01/02/", ""]),
        ("logs/2026/01/022/x.json", [""]),
        ("logs/a/commits/x", ["a/commits/", ""]),
        ("x", [""]),
    ],
)
def test_only_logs_whose_path_is_in_the_key_are_searched_the_longest_first(key, paths):
    store = store_with("", "2026/01/02/", "2026/01/03/", "a/commits/", "other/")
    assert [log.path for log in logs_for_key(key, STATE, store)] == paths
    store.page_size = 2
    assert [log.path for log in logs_for_key(key, STATE, store)] == paths


def test_searching_a_key_does_not_look_at_every_partition():
    many = [f"2026/{month:02}/{day:02}/" for month in range(1, 13) for day in range(1, 29)]
    store = store_with(*many)
    before = store.count("list_objects", "list_level")
    assert len([*logs_for_key("logs/2026/05/05/x", STATE, store)]) == 1
    assert store.count("list_objects", "list_level") - before == 1
    store.page_size = 50
    before = store.count("list_objects", "list_level")
    assert len([*logs_for_key("logs/2026/05/05/x", STATE, store)]) == 1
    assert store.count("list_objects", "list_level") - before <= 8


def test_a_missing_entry_is_noticed():
    store = store_with("a/")
    key = f"{STATE.prefix}partitions/a/commits/{3:020d}.json.gz"
    store.seed("lake", key, b"entry", last_modified=0.0)
    (log,) = all_logs(STATE, store)
    assert log.missing == [2]


def test_a_damaged_entry_is_an_integrity_error_that_names_it():
    store = store_with("a/")
    (log,) = all_logs(STATE, store)
    with pytest.raises(IntegrityError, match=r"partitions/a/commits/0+1\.json\.gz is damaged"):
        [*log.newest_first(store)]


def test_what_a_replaced_entry_replaced_stays_void():
    store = store_with()
    for sequence, replaces in ((1, None), (2, 1), (3, 2)):
        entry = Commit(sequence, f"id-{sequence}", "run", 0.0, "source", "group", replaces=replaces)
        key = f"{STATE.prefix}partitions/a/commits/{sequence:020d}.json.gz"
        store.seed("lake", key, encode_commit(entry), last_modified=0.0)
    (log,) = all_logs(STATE, store)
    assert [commit.sequence for commit in log.newest_first(store)] == [3]
