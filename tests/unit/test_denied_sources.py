"""Sources that this role may not read, or not now: one stops nothing, a prefix is one line."""

from __future__ import annotations

import pytest

from compactor.errors import InvalidInput
from compactor.limits import USUAL
from compactor.log.encoding import decode_checkpoint, encode_checkpoint
from compactor.log.log import CommitLog
from compactor.model import QuarantineReason
from compactor.outputs.group_reading import DENIED_IN_A_ROW
from compactor.partition.receipts import Receipt
from tests.support.examples import NOW, PARTITION
from tests.support.world import World

REASONS = (
    QuarantineReason.ACCESS_DENIED,
    QuarantineReason.ENCRYPTED,
    QuarantineReason.ARCHIVED,
)
WRITES = ("create", "create_upload", "upload_part", "copy_part", "complete_upload")


def world(sources: int = 3, **given: object) -> World:
    made = World(**given)
    for number in range(sources):
        made.add(f"{number:03}.json", '{{"id": "{}"}}')
    return made


def key(number: int) -> str:
    return f"{PARTITION.prefix}{number:03}.json"


def deny(made: World, *numbers: int, reason: str = "access_denied") -> None:
    for number in numbers:
        made.store.unreadable["source", key(number)] = QuarantineReason(reason)


def told(receipt: Receipt) -> list[tuple[str, str]]:
    return [(line.key, line.reason) for line in receipt.quarantined]


@pytest.mark.parametrize("reason", REASONS)
def test_one_bad_source_is_reported_with_its_reason_and_stops_nothing(reason: str) -> None:
    made = world()
    deny(made, 1, reason=reason)
    receipt = made.run()
    assert (receipt.status, receipt.counts.objects_in, receipt.counts.quarantined) == ("done", 2, 1)
    assert told(receipt) == [(key(1), reason)]
    made.check()
    assert set(made.destination()) == {0, 1, 2, 6, 7, 8}


@pytest.mark.parametrize("reason", REASONS)
def test_a_bad_source_is_tried_again_by_every_run_and_written_down_once(reason: str) -> None:
    made = world()
    deny(made, 0, reason=reason)
    made.run()
    reads, writes = made.store.count("read_source"), made.store.count(*WRITES)
    receipt = made.run()
    assert told(receipt) == [(key(0), reason)]
    assert receipt.counts.quarantined == 1
    assert made.store.count("read_source") == reads + 1
    assert made.store.count(*WRITES) == writes, "a run that changes nothing writes nothing"


@pytest.mark.parametrize("reason", REASONS)
def test_a_source_that_can_be_read_again_is_compacted_without_being_asked_to(reason: str) -> None:
    made = world()
    deny(made, 0, reason=reason)
    made.run()
    made.store.unreadable.clear()
    receipt = made.run()
    assert (receipt.counts.objects_in, receipt.counts.quarantined) == (1, 0)
    made.must_be_finished()


def test_what_was_left_for_a_while_is_known_beyond_a_checkpoint() -> None:
    made = world()
    deny(made, 0)
    made.run()
    state = CommitLog(made.store, made.settings, PARTITION).load()
    assert state.checkpoint == 1
    assert (len(state.passing), len(state.quarantined)) == (1, 0)
    assert decode_checkpoint(encode_checkpoint(state, "p/"), "p/").passing == state.passing


def test_a_large_source_is_left_alone_like_a_small_one() -> None:
    made = world(2)
    made.put("big.json", b'{"id": 1}\n' * (USUAL.whole_bytes // 10 + 1))
    made.store.unreadable["source", f"{PARTITION.prefix}big.json"] = QuarantineReason.ENCRYPTED
    receipt = made.run()
    assert told(receipt) == [(f"{PARTITION.prefix}big.json", "encrypted")]
    made.check()
    assert made.store.unfinished_uploads("lake") == {}


# A whole prefix.


@pytest.mark.parametrize("sources", [2, DENIED_IN_A_ROW - 1, DENIED_IN_A_ROW, 300])
def test_a_partition_of_which_nothing_may_be_read_ends_with_one_line(sources: int) -> None:
    made = world(sources)
    deny(made, *range(sources))
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"permission.*may read") as caught:
            made.run()
        assert "\n" not in str(caught.value)
        assert made.store.count("read_source") <= 2 * 2 * DENIED_IN_A_ROW
    made.store.unreadable.clear()
    made.run()
    made.must_be_finished()


def test_a_prefix_that_is_denied_from_one_day_on_ends_with_one_line() -> None:
    made = world(50)
    made.run()
    for number in range(50, 150):
        made.add(f"{number:03}.json", '{{"id": "{}"}}')
    deny(made, *range(50, 150))
    with pytest.raises(InvalidInput, match="permission"):
        made.run()
    assert made.store.count("read_source") <= 50 + 2 * DENIED_IN_A_ROW


def test_many_denied_sources_before_one_that_may_be_read_do_not_stop_it() -> None:
    made = world(101)
    deny(made, *range(100))
    receipt = made.run()
    assert (receipt.counts.objects_in, receipt.counts.quarantined) == (1, 100)


def test_denied_sources_that_are_left_over_do_not_stop_those_that_come() -> None:
    made = world(101)
    deny(made, *range(100))
    made.run()
    idle = made.run()
    assert (idle.status, idle.counts.quarantined) == ("done", 100)
    assert all(line.detail.startswith("not tried") for line in idle.quarantined)
    # Neither is among the few that are tried before all are taken for denied.
    made.add("021-late.json", '{{"id": "{}"}}')
    receipt = made.run()
    assert (receipt.status, receipt.counts.objects_in) == ("done", 1)
    assert receipt.counts.quarantined == 100


def test_a_source_in_an_archive_tier_says_nothing_of_the_role() -> None:
    made = world(30)
    deny(made, *range(30), reason="archived_access_tier")
    receipt = made.run()
    assert (receipt.status, receipt.counts.quarantined) == ("done", 30)


def test_sources_too_young_to_be_read_are_not_tried() -> None:
    made = world(2)
    made.store.seed("source", key(9), b'{"id": 1}\n', last_modified=NOW)
    deny(made, 9)
    assert made.run().counts.quarantined == 0
