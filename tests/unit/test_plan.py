"""What is compacted and what is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.log.digests import Digests
from compactor.model import CompactionPlan, Compression, Format, Signature, Skipped, SkipReason
from compactor.planning.plan import Knowledge, plan
from tests.support.examples import NOW, ON_LINES, listing, settings, source

NOTHING = Knowledge()
MIB = 1024 * 1024


def decide(*objects, known=NOTHING, complete=True, **fields) -> CompactionPlan:
    return plan(listing(*objects, complete=complete), settings(**fields), known, NOW)


def names(decision: CompactionPlan) -> list[list[str]]:
    return [[s.key.rsplit("/", 1)[-1] for s in group.sources] for group in decision.groups]


def test_settled_objects_of_one_kind_become_one_group_in_key_order():
    decision = decide(source("a.json"), source("b.json"), source("c.json"))
    assert names(decision) == [["a.json", "b.json", "c.json"]]
    assert decision.skipped == {}


def test_objects_younger_than_the_settle_time_are_left_alone():
    decision = decide(
        source("old.json", age_seconds=700),
        source("young.json", age_seconds=500),
    )
    assert names(decision) == []
    assert decision.skipped[SkipReason.OPEN_PARTITION].examples == ("logs/2026/01/02/old.json",)
    assert decision.skipped[SkipReason.TOO_YOUNG].examples == ("logs/2026/01/02/young.json",)


def test_the_oldest_object_skipped_for_each_reason_is_known():
    ages = {"a.json": 300, "b.json": 500, "c.json": 400}
    sources = {name: source(name, age_seconds=age) for name, age in ages.items()}
    young = decide(*sources.values()).skipped[SkipReason.TOO_YOUNG]
    assert (young.objects, young.oldest) == (3, sources["b.json"].last_modified)
    older = Skipped(1, 1, oldest=young.oldest - 1)
    assert [one.oldest for one in (young.plus(older), older.plus(young))] == [older.oldest] * 2
    assert Skipped(1, 1).plus(young).oldest == young.plus(Skipped(1, 1)).oldest == young.oldest
    assert (young.less(Skipped(1, 1)).oldest, young.less(young).oldest) == (young.oldest, 0)


def test_an_open_partition_gives_up_only_full_groups():
    objects = [source(f"{n:02}.log", size=6 * MIB, age_seconds=3000) for n in range(4)]
    decision = decide(*objects, target_bytes=12 * MIB, small_object_bytes=12 * MIB)
    assert names(decision) == [["00.log", "01.log"]]
    assert decision.skipped[SkipReason.OPEN_PARTITION].objects == 2


def test_a_partition_that_went_quiet_gives_up_everything():
    objects = [source(f"{n:02}.log", size=6 * MIB, age_seconds=3700) for n in range(3)]
    decision = decide(*objects, target_bytes=12 * MIB, small_object_bytes=12 * MIB)
    assert names(decision) == [["00.log", "01.log"], ["02.log"]]


@pytest.mark.parametrize("key", ["_compactor/other/identity.json", "_compactor/x/runs/1/a.json"])
def test_where_logs_lie_nothing_is_a_source_of_any_writer(key):
    kept = replace(source("a"), key="logs/compactor/kept.json")
    decision = decide(replace(source("a"), key=key), kept, s3_source_uri="s3://source/")
    assert names(decision) == [["kept.json"]]
    assert decision.skipped[SkipReason.OWN_STATE].examples == (key,)


def test_fewer_objects_than_the_minimum_are_left_alone():
    decision = decide(source("a.json"), source("b.json"), min_objects=3)
    assert decision.empty
    assert decision.skipped[SkipReason.TOO_FEW].objects == 2


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("x/", {}, SkipReason.DIRECTORY_MARKER),
        ("a.tmp", {"exclude": ["*.tmp"]}, SkipReason.EXCLUDED),
        ("a.csv", {"include": ["*.json"]}, SkipReason.NOT_INCLUDED),
        ("1_CloudTrail-Digest_eu_x.json.gz", {}, SkipReason.CLOUDTRAIL_DIGEST),
    ],
)
def test_a_key_that_is_no_input_is_skipped_with_its_reason(name, fields, reason):
    size = 0 if name.endswith("/") else 10
    decision = decide(source(name, size=size), source("kept.json"), **fields)
    assert names(decision) == [["kept.json"]]
    assert decision.skipped[reason].objects == 1


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_archived_objects_cannot_be_read_and_are_left_alone(storage_class):
    decision = decide(source("a.json", storage_class=storage_class), source("b.json"))
    assert decision.skipped[SkipReason.ARCHIVED].objects == 1


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_archived_objects_are_sources_while_their_restored_copies_last(storage_class):
    lasting = source("a.json", storage_class=storage_class, restored_until=NOW + 1)
    over = source("b.json", storage_class=storage_class, restored_until=NOW)
    decision = decide(lasting, over, source("c.json"))
    assert names(decision) == [["a.json", "c.json"]]
    assert decision.skipped[SkipReason.ARCHIVED].examples == (over.key,)


def test_glacier_instant_retrieval_is_read_like_any_other_class():
    assert names(decide(source("a.json", storage_class="GLACIER_IR"))) == [["a.json"]]


def test_what_a_commit_names_is_no_candidate():
    done = source("a.json")
    decision = decide(done, source("b.json"), known=Knowledge(committed=Digests({done.identity})))
    assert names(decision) == [["b.json"]]
    assert decision.skipped[SkipReason.COMMITTED].objects == 1


def test_what_is_put_over_a_committed_source_is_no_candidate():
    done = source("a.json")
    changed = replace(done, etag="another")
    decision = decide(changed, known=Knowledge(committed=Digests({done.identity})))
    assert decision.empty
    assert decision.skipped[SkipReason.OVERWRITTEN].examples == (changed.key,)


def test_quarantined_sources_are_tried_again_only_when_asked():
    bad = source("a.json")
    known = Knowledge(quarantined={bad.identity})
    assert decide(bad, known=known).skipped[SkipReason.QUARANTINED].objects == 1
    assert names(decide(bad, known=known, retry_quarantined=True)) == [["a.json"]]


def test_formats_known_by_the_key_never_share_a_group():
    decision = decide(source("a.csv"), source("b.json"), source("c.csv"), source("d.json.gz"))
    assert sorted(names(decision)) == [["a.csv", "c.csv"], ["b.json"], ["d.json.gz"]]


def test_sources_seen_not_to_fit_are_grouped_by_what_was_seen():
    a, b, c = source("a.csv"), source("b.csv"), source("c.csv")
    odd = Signature(Format.CSV, Compression.NONE, b"other,header")
    known = Knowledge(signatures={b.identity: odd})
    assert sorted(names(decide(a, b, c, known=known))) == [["a.csv", "c.csv"], ["b.csv"]]


def test_zero_byte_objects_join_a_group_but_never_make_one():
    assert names(decide(source("a.json", size=0), source("b.json"))) == [["a.json", "b.json"]]
    alone = decide(source("a.json", size=0))
    assert alone.empty
    assert alone.skipped[SkipReason.EMPTY].objects == 1


def test_a_source_larger_than_the_target_is_alone_in_its_group():
    decision = decide(
        source("a.csv", size=MIB),
        source("b.csv", size=90 * MIB),
        source("c.csv", size=MIB),
        target_bytes=32 * MIB,
        compression="gzip",
        small_object_bytes=32 * MIB,
    )
    assert names(decision) == [["a.csv", "b.csv", "c.csv"]], "90 MiB plain is 18 MiB of gzip"
    decision = decide(
        source("a.log", size=MIB), source("b.log", size=190 * MIB), source("c.log", size=MIB),
        target_bytes=32 * MIB, compression="gzip",
    )  # fmt: skip
    assert names(decision) == [["a.log"], ["b.log"], ["c.log"]]


def test_large_objects_are_copied_server_side_unless_their_bytes_must_change():
    big = source("big.json.gz", size=65 * MIB)
    assert [group.copy for group in decide(big).groups] == [True]
    assert [group.copy for group in decide(big, compression="zstd").groups] == [False]
    trail = source("1_CloudTrail_eu_x.json.gz", size=65 * MIB)
    assert [g.copy for g in decide(trail, formats=ON_LINES).groups] == [False]


def test_an_incomplete_listing_still_moves_on():
    decision = decide(source("a.json"), source("b.json"), complete=False)
    assert names(decision) == [["a.json", "b.json"]]


def test_the_group_id_changes_with_sources_and_with_options_that_shape_the_bytes():
    a, b = source("a.json"), source("b.json")
    ids = {
        decide(a, b).groups[0].id,
        decide(a, replace(b, etag="other")).groups[0].id,
        decide(a).groups[0].id,
        decide(a, b, compression="gzip").groups[0].id,
        decide(a, b, format="text").groups[0].id,
    }
    assert len(ids) == 5
    assert decide(a, b).groups[0].id == decide(a, b, settle_seconds=1).groups[0].id


object_names = st.text("abc./_-=%é", min_size=1, max_size=12)
objects = st.lists(
    st.builds(
        lambda name, size, age: source(name, size=size, age_seconds=age),
        object_names,
        st.integers(0, 300 * MIB),
        st.floats(0, 10_000),
    ),
    max_size=30,
    unique_by=lambda one: one.key,
)


@given(objects, st.booleans())
def test_every_listed_object_is_in_one_group_or_skipped_for_one_reason(listed, complete):
    ordered = sorted(listed, key=lambda one: one.key)
    decision = decide(*ordered, complete=complete)
    grouped = [s.key for group in decision.groups for s in group.sources]
    skipped = sum(one.objects for one in decision.skipped.values())
    assert len(grouped) == len(set(grouped))
    for group in decision.groups:
        keys = [s.key for s in group.sources]
        assert keys == sorted(keys)
        assert group.size > 0
    if complete:
        assert len(grouped) + skipped == len(listed)


@given(objects)
def test_a_plan_over_committed_objects_is_empty(listed):
    known = Knowledge(committed=Digests(one.identity for one in listed))
    assert decide(*listed, known=known).empty


@given(objects)
def test_the_same_listing_always_gives_the_same_plan(listed):
    assert decide(*listed) == decide(*listed)
