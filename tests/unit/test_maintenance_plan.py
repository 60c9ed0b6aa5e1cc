"""What is done to a table, by whom, and why: by example."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compactor.sizes import GIB, MIB, TIB
from compactor_tables.costs import Rewrite, cost
from compactor_tables.evolved_specs import may_share_rows
from compactor_tables.measures import (
    DELTA,
    ICEBERG,
    DataFile,
    PartitionMeasure,
    PartitionValue,
    TableMeasure,
)
from compactor_tables.orders import Condition
from compactor_tables.policies import read_policies
from compactor_tables.table_planning import TablePlan, plan_table

# 2026-11-10 12:00 UTC.
NOW = 1_794_312_000.0
HOUR, DAY = 3_600.0, 86_400.0
DAY_1, DAY_2 = (PartitionValue("day", "identity", text) for text in "12")
KIND_A = PartitionValue("kind", "identity", "a")


def partition(
    name: str, *files: DataFile, age: float | None = DAY, **more: Any
) -> PartitionMeasure:
    column, _, value = name.partition("=")
    where = (PartitionValue(column, "identity", value),) if name else ()
    changed = None if age is None else NOW - age
    return PartitionMeasure(name, files, changed, **({"where": where} | more))


def small(count: int = 10, size: int = MIB, **more: Any) -> list[DataFile]:
    return [DataFile(size, 1_000)._replace(**more)] * count


def table(
    *partitions: PartitionMeasure, name: str = "glue:lake.events", **more: Any
) -> TableMeasure:
    given: dict[str, Any] = {
        "version": "7",
        "target_bytes": 512 * MIB,
        "format": ICEBERG,
        "format_version": 2,
        "commits": [NOW - DAY],
    }
    return TableMeasure(name=name, partitions=partitions, **(given | more))


def delta(*partitions: PartitionMeasure, **more: Any) -> TableMeasure:
    given: dict[str, Any] = {
        "name": "delta:s3://lake/events/",
        "format": DELTA,
        "target_bytes": 128 * MIB,
    }
    return table(*partitions, **(given | {"format_version": 0} | more))


JVM_AND_ATHENA = ("spark", "athena")


def plan(
    measure: TableMeasure, available: Any = JVM_AND_ATHENA, /, now: float = NOW, **rule: Any
) -> TablePlan:
    policies = read_policies([{"match": ["*"], **rule}])
    return plan_table(measure, policies.of(measure.name), now, available)


def named(found: TablePlan) -> list[str]:
    return [one.name for one in found.order("r").partitions]


# Which partitions.


def test_what_is_closed_and_small_is_rewritten_and_what_is_written_now_is_left():
    found = plan(
        table(
            partition("day=1", *small(10)),
            partition("day=2", *small(10), age=600.0),
            partition("day=3", *small(4)),
            partition("day=4", DataFile(512 * MIB, 5)),
        )
    )
    assert named(found) == ["day=1"]
    assert found.rewrite == Rewrite(10, 10 * MIB)
    assert [one.left for one in found.partitions] == [
        "",
        "written 10 minutes ago",
        "nothing to rewrite",
        "nothing to rewrite",
    ]
    (ordered,) = found.order("r").partitions
    assert ordered.where == (Condition("day", "identity", "1"),)
    assert (ordered.files, ordered.bytes) == (10, 10 * MIB)


def test_a_partition_whose_last_change_is_unknown_changed_with_the_last_commit():
    unknown = partition("day=1", *small(), age=None)
    assert named(plan(table(unknown))) == ["day=1"]
    assert named(plan(table(unknown, commits=[NOW - 60]))) == []


def test_a_rule_says_when_a_partition_is_closed():
    one = table(partition("", *small(), age=30.0))
    assert plan(one).engine == "none"
    assert "written 30 seconds ago" in plan(one).reason
    found = plan(one, closed_after_seconds=0)
    assert found.engine == "athena"


def test_a_run_rewrites_what_gains_most_for_its_bytes_and_no_more():
    found = plan(
        table(
            partition("day=1", *small(10, 10 * MIB)),
            partition("day=2", *small(100, MIB)),
            partition("day=3", *small(20, 5 * MIB)),
            partition("day=4", *small(2_000, MIB)),
        ),
        most_bytes=250 * MIB,
    )
    assert named(found) == ["day=2", "day=3"]
    assert found.rewrite.bytes == 200 * MIB
    lefts = {one.name: one.left for one in found.partitions}
    assert lefts["day=1"].endswith("this is one of the rest")
    assert lefts["day=4"].endswith("it has more to")


def test_files_of_a_refused_older_spec_are_left_and_what_may_have_their_rows():
    why = "its files are of an older partition spec, by bucket[4] of id"
    first, second = ((PartitionValue("id", "bucket[4]", text),) for text in "01")
    found = plan(
        table(
            partition("b=0", *small(), where=first, refusal=why),
            partition("b=0/day=1", *small(), where=(*first, DAY_1), spec=1),
            partition("b=1/day=1", *small(), where=(*second, DAY_1), spec=1),
            spec=1,
        )
    )
    assert named(found) == ["b=1/day=1"]
    assert [one.left for one in found.partitions] == [
        why,
        "files of an older partition spec may have rows of it",
        "",
    ]


def evolved(*more: PartitionMeasure, age: float = DAY) -> TableMeasure:
    """A table by day, and then by day and kind."""
    return table(
        partition("day=1", *small(6), where=(DAY_1,)),
        partition("day=1/kind=a", *small(3), where=(DAY_1, KIND_A), spec=1, age=age),
        partition("day=2/kind=a", *small(7), where=(DAY_2, KIND_A), spec=1),
        *more,
        spec=1,
    )


def test_files_of_an_older_spec_are_rewritten_with_all_that_their_condition_selects():
    found = plan(evolved())
    assert [(one.name, one.files, one.left) for one in found.partitions] == [
        ("day=1", 9, ""),
        ("day=2/kind=a", 7, ""),
    ]
    first, second = found.order("r").partitions
    assert (first.spec, first.where) == (0, (Condition("day", "identity", "1"),))
    # Three files of the present spec are too few for a rewrite of their own.
    assert (first.files, first.bytes) == (6, 6 * MIB)
    assert (second.files, second.spec) == (7, 1)
    # Sorted are all of them.
    assert [one.files for one in plan(evolved(), sort=["id"]).order("r").partitions] == [9, 7]


def test_an_older_partition_is_open_while_any_file_in_it_is():
    found = plan(evolved(age=600.0))
    assert named(found) == ["day=2/kind=a"]
    assert found.partitions[0].left == "written 10 minutes ago"


def test_only_spark_rewrites_files_of_an_older_spec():
    found = plan(evolved())
    assert found.engine == "spark"
    assert "athena leaves files of an older partition spec" in found.reason
    asked = plan(evolved(), engine="athena")
    assert (asked.engine, named(asked)) == ("athena", ["day=2/kind=a"])
    assert "only Spark rewrites" in asked.partitions[0].left
    without = plan(evolved(), ["athena"])
    assert (without.engine, named(without)) == ("athena", ["day=2/kind=a"])


def test_of_several_older_specs_the_widest_partition_takes_the_others():
    country = PartitionValue("country", "identity", "x")
    whole = table(
        partition("day=1", *small(6), where=(DAY_1,)),
        partition("day=1/kind=a", *small(5), where=(DAY_1, KIND_A), spec=1),
        partition("day=1/kind=a/country=x", *small(5), where=(DAY_1, KIND_A, country), spec=2),
        partition("day=2/kind=a", *small(5), where=(DAY_2, KIND_A), spec=1),
        partition("day=2/kind=a/country=x", *small(4), where=(DAY_2, KIND_A, country), spec=2),
        spec=2,
    )
    found = plan(whole)
    assert [(one.name, one.files, one.rewrite.files) for one in found.partitions] == [
        ("day=1", 16, 16),
        ("day=2/kind=a", 9, 5),
    ]
    assert [one.spec for one in found.order("r").partitions] == [0, 1]


def test_older_files_are_left_where_a_third_spec_may_have_rows_of_them():
    month = PartitionValue("day", "month", "1")
    other = partition("m=1", *small(), where=(month,), spec=2, refusal="older")
    found = plan(evolved(other))
    assert {one.name: bool(one.left) for one in found.partitions} == {
        "day=1": True,
        "day=1/kind=a": True,
        "day=2/kind=a": False,
        "m=1": True,
    }


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (("identity", "a"), ("identity", "b"), False),
        (("identity", "a"), ("identity", None), False),
        (("bucket[4]", "1"), ("bucket[8]", "2"), True),
        (("truncate[2]", "ab"), ("identity", "abc"), True),
        (("day", "2026-11-01"), ("hour", "2026-11-01-06"), True),
        (("day", "2026-11-02"), ("hour", "2026-11-01-06"), False),
        (("month", "2026-11"), ("day", "2026-11-02"), True),
        (("month", "2026-10"), ("day", "2026-11-02"), False),
        (("day", None), ("hour", "2026-11-01-06"), False),
        (("void", None), ("day", "2026-11-02"), True),
    ],
)
def test_divisions_of_a_column_share_rows_or_do_not(one, other, shared):
    values = [[PartitionValue("at", *each)] for each in (one, other)]
    assert may_share_rows(*values) is shared
    assert may_share_rows(*reversed(values)) is shared
    assert may_share_rows([], values[0])


# How.


def test_sorted_rows_take_the_whole_partition():
    one = table(partition("day=1", *small(9), DataFile(600 * MIB, 5)))
    assert plan(one).rewrite == Rewrite(9, 9 * MIB)
    found = plan(one, sort=["id desc"])
    assert found.rewrite == Rewrite(10, 609 * MIB)
    assert (found.order("r").how, found.order("r").columns) == ("sort", ("id desc",))


def test_z_order_of_a_delta_table_waits_for_small_files():
    large = [DataFile(127 * MIB, 5)] * 2
    assert plan(delta(partition("", *large)), zorder=["a"]).engine == "none"
    found = plan(delta(partition("", *large, *small(8))), zorder=["a"])
    assert found.rewrite == Rewrite(10, 262 * MIB)
    assert found.order("r").how == "zorder"


def test_a_number_of_files_is_for_delta():
    found = plan(delta(partition("", *small(10))), num_files=3)
    assert found.rewrite == Rewrite(10, 10 * MIB)
    assert (found.order("r").how, found.order("r").num_files) == ("number", 3)
    assert plan(delta(partition("", *small(3))), num_files=3).engine == "none"
    refused = plan(table(partition("", *small(10))), num_files=3)
    assert refused.engine == "none"
    assert "num_files is for Delta" in refused.reason


@pytest.mark.parametrize("engine", ["spark", "athena"])
def test_of_an_iceberg_partition_what_is_too_small_or_too_large_is_selected(engine):
    fine = [DataFile(384 * MIB, 5), DataFile(921 * MIB, 5)] * 9
    assert plan(table(partition("", *fine)), engine=engine).engine == "none"
    too_small = [DataFile(383 * MIB, 5)] * 5
    found = plan(table(partition("", *fine, *too_small)), engine=engine)
    assert found.rewrite == Rewrite(5, 5 * 383 * MIB)
    found = plan(table(partition("", *fine, *too_small[:2], DataFile(922 * MIB, 5))), engine=engine)
    assert found.rewrite == Rewrite(3, (922 + 2 * 383) * MIB)


def test_of_a_delta_partition_files_are_selected_of_which_two_fit_into_one():
    large = [DataFile(65 * MIB, 5)] * 9
    assert plan(delta(partition("", *large))).engine == "none"
    found = plan(delta(partition("", *large, *small(5, 64 * MIB))))
    assert found.rewrite == Rewrite(5, 320 * MIB)


def test_a_delta_partition_with_few_files_to_pack_is_left():
    assert plan(delta(partition("", *small(4)))).engine == "none"
    assert plan(delta(partition("", *small(4))), min_files=3).rewrite.files == 4


def test_the_size_of_a_rule_goes_before_that_of_the_table():
    one = table(partition("", *small(10, 40 * MIB)))
    assert plan(one).rewrite == Rewrite(10, 400 * MIB)
    assert plan(one, target_bytes=50 * MIB).engine == "none"
    found = plan(one, target_bytes=100 * MIB)
    assert found.order("r").target_bytes == 100 * MIB


def test_athena_rewrites_a_file_with_two_deletes_and_spark_by_the_share_of_its_rows():
    worn = DataFile(512 * MIB, 1_000, 10, 2)
    one = table(partition("", worn, worn))
    assert plan(one, engine="athena").rewrite.files == 2
    assert plan(one, engine="spark").rewrite.files == 0
    half = table(partition("", worn._replace(deleted=500, deletes=1)))
    assert plan(half, engine="spark").rewrite.files == 1
    assert plan(half, engine="athena").rewrite.files == 0


# By whom.


def test_the_cheapest_engine_that_can_is_taken():
    little = plan(table(partition("", *small(100))))
    assert little.engine == "athena"
    assert little.reason.startswith("cheaper than spark: $")
    much = plan(table(partition("", *small(40_000, 10 * MIB))))
    assert much.engine == "spark"
    assert much.costs["spark"] < much.costs["athena"]
    assert set(much.costs) == set(JVM_AND_ATHENA)


@pytest.mark.parametrize(
    ("measure", "rule", "why"),
    [
        (delta(partition("", *small())), {}, "athena rewrites tables of Iceberg alone"),
        (table(partition("", *small()), name="rest:http://h#a.b"), {}, "in Glue's catalog alone"),
        (table(partition("", *small())), {"sort": ["a"]}, "neither sorts nor z-orders"),
        (table(partition("", *small()), format_version=3), {}, "no table of version 3"),
        (table(partition("", *small())), {"min_files": 4}, "from the table's properties alone"),
        (table(partition("", *small())), {"target_bytes": MIB * 2}, "properties alone"),
    ],
)
def test_spark_takes_what_athena_cannot(measure, rule, why):
    found = plan(measure, **rule)
    assert found.engine == "spark"
    assert why in found.reason
    assert "athena" not in found.costs
    assert why in found.unable["athena"]


def test_an_engine_of_the_rule_that_cannot_do_it_is_not_replaced():
    refused = plan(delta(partition("", *small())), engine="athena")
    assert (refused.engine, refused.reason) == (
        "none",
        "the rule wants athena, but athena rewrites tables of Iceberg alone",
    )


def test_an_engine_that_is_not_here_is_not_taken():
    one = table(partition("", *small()))
    assert plan(one, ["spark"]).engine == "spark"
    assert plan(one, ["athena"]).engine == "athena"
    assert plan(one, []).reason == (
        "there is no worker here; there is no spark here; there is no athena here"
    )
    assert plan(one, ["spark"], engine="athena").reason == (
        "the rule wants athena, but there is no athena here"
    )


# When.


def test_nothing_runs_in_quiet_hours_and_nothing_is_begun_when_they_begin():
    one = table(partition("", *small()))
    found = plan(one, quiet_hours=["11:30-12:30"])
    assert (found.engine, found.reason) == ("none", "nothing may run from 11:30-12:30 (UTC)")
    assert not found.steps
    assert not found.order("r").partitions
    assert found.estimate() == {"files": 0, "bytes": 0, "dollars": 0.0}
    later = plan(one, quiet_hours=["22:00-04:00", "13:30-14:00"])
    assert later.order("r").until == NOW + 1.5 * HOUR
    assert plan(one, quiet_hours=["08:00-09:00"]).order("r").until == NOW + 20 * HOUR
    assert plan(one).order("r").until is None


def test_what_a_rule_leaves_is_left():
    found = plan(table(partition("", *small())), leave=True)
    assert (found.engine, found.reason) == ("none", "the rule says to leave it")
    assert found.order("r").partitions == ()


# The other steps.


def test_old_snapshots_go_with_a_rewrite_and_after_a_day_by_themselves():
    old = [NOW - 7.5 * DAY]
    busy, fine = table(partition("", *small())), table(partition("", DataFile(512 * MIB, 5)))
    assert plan(replace(busy, superseded=old)).steps == ("rewrite", "expire", "orphans")
    assert plan(busy).steps == ("rewrite", "orphans")
    assert plan(replace(fine, superseded=old)).engine == "none"
    older = replace(fine, superseded=[NOW - 8.5 * DAY])
    assert plan(older).steps == ("expire", "orphans")
    assert plan(older, keep_days=30).engine == "none"
    assert plan(older, keep_versions=2).engine == "none"


def test_deletes_are_dealt_with_where_files_go_or_have_many():
    def steps(*files: DataFile) -> tuple[str, ...]:
        return plan(table(partition("", *files)), ["spark"]).steps

    assert steps(*small(10, deletes=1)) == ("rewrite", "deletes", "orphans")
    assert steps(DataFile(512 * MIB, 1_000, 0, 4)) == ()
    assert steps(DataFile(512 * MIB, 1_000, 0, 5)) == ("deletes", "orphans")


def test_delta_purges_a_worn_file_that_is_not_packed():
    worn = DataFile(200 * MIB, 1_000, 300, 1)
    found = plan(
        delta(partition("day=1", worn), partition("day=2", *small(10, deleted=900, deletes=1)))
    )
    assert found.steps == ("rewrite", "deletes", "orphans")
    assert plan(delta(partition("day=1", worn._replace(deleted=299)))).engine == "none"
    assert plan(delta(partition("day=1", worn))).steps == ("deletes", "orphans")


def test_many_small_manifests_are_rewritten():
    def steps(manifests: int, size: int) -> tuple[str, ...]:
        one = table(partition("", DataFile(512 * MIB, 5)))
        measure = replace(one, metadata_files=manifests, metadata_bytes=size)
        return plan(measure, ["spark"]).steps

    assert steps(20, 1_000) == ()
    assert steps(21, 1_000) == ("manifests", "orphans")
    assert steps(40, 80 * MIB) == ()
    assert steps(41, 80 * MIB) == ("manifests", "orphans")


def test_a_long_log_gets_a_checkpoint_beside_a_rewrite_and_a_very_long_one_for_itself():
    fine, busy = delta(partition("", DataFile(GIB, 5))), delta(partition("", *small()))
    assert plan(replace(fine, metadata_files=100)).engine == "none"
    assert plan(replace(fine, metadata_files=101)).steps == ("checkpoint", "orphans")
    assert plan(replace(busy, metadata_files=20)).steps == ("rewrite", "orphans")
    assert plan(replace(busy, metadata_files=21)).steps == ("rewrite", "checkpoint", "orphans")


# What is told.


def test_an_order_carries_what_the_rule_says():
    found = plan(
        table(partition("", *small())),
        engine="spark",
        keep_days=9,
        keep_versions=4,
        orphan_days=5,
        verify_bytes=10 * MIB - 1,
        min_files=6,
    )
    order = found.order("run-1")
    assert (order.run_id, order.table, order.engine, order.measured) == (
        "run-1",
        "glue:lake.events",
        "spark",
        "7",
    )
    assert (order.keep_seconds, order.keep_versions) == (9 * DAY, 4)
    assert order.orphan_seconds == 5 * DAY
    assert (order.verify_rows, order.min_files, order.rule) == (False, 6, "rule 1 (*)")
    twice = plan(table(partition("", *small())), keep_days=1, below_floor=True).order("r")
    assert (twice.below_floor, twice.keep_seconds) == (True, DAY)


def test_a_plan_is_reported_as_json():
    measure = table(partition("day=1", *small()), partition("day=2", DataFile(GIB, 5), age=None))
    told = json.loads(json.dumps(plan(measure).to_dict()))
    assert told["rewrite"] == {"files": 11, "bytes": 10 * MIB + GIB}
    assert told["partitions"][0]["rewrite"]["files"] == 10
    assert [one for one in told["sizes"] if one["files"]] == [
        {"to": 1 << 22, "files": 10},
        {"to": 1 << 31, "files": 1},
    ]
    assert told["sizes"][-1] == {"to": None, "files": 0}
    assert "template" not in told


def test_the_model_of_costs():
    little, much = Rewrite(10, MIB), Rewrite(100_000, TIB)
    # 10 MB a query at least; 5 dollars a TiB; requests come on top.
    assert cost("athena", little) == pytest.approx(5 * 10e6 / TIB + 20 * 4e-7)
    assert cost("athena", little, 3) == pytest.approx(5 * 30e6 / TIB + 20 * 4e-7)
    assert cost("athena", much) == pytest.approx(5 + 0.08)
    assert 0.8 * 0.014 < cost("spark", little) < 0.8 * 0.017
    assert cost("spark", much) < cost("athena", much)
