"""The layout of keys: what fits it, and that what is not clear is shown as such."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from compactor.model import SourceObject
from compactor.scanning.layouts import Layout, choose

BEGIN = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = [BEGIN + timedelta(days=n) for n in range(30)]
_DAY = 86_400.0


def objects(levels: Iterable[str], each: int = 10) -> Iterator[SourceObject]:
    """So many objects in each directory, whose strftime format is taken from a month of days."""
    for text in levels:
        for day in [DAYS[0]] if "%" not in text else DAYS:
            arrived = day.timestamp() + 3_600
            for n in range(each):
                key = f"logs/{day.strftime(text)}{n:04}.json"
                yield SourceObject("mine", key, f"{n:032x}", 1_000, arrived)


def layouts_of(sources: Iterable[SourceObject], prefix: str = "logs/") -> list[Layout]:
    return choose(Counter(f"{one.key.rpartition('/')[0]}/" for one in sources), prefix)


def chosen(*levels: str, each: int = 10) -> list[Layout]:
    return layouts_of(objects(levels, each))


def told(layouts: list[Layout]) -> list[tuple[str, str | None, int, int]]:
    return [
        ("/".join((*one.root, *one.pattern)), one.date_format, one.depth, one.objects)
        for one in layouts
    ]


def test_a_date_that_all_keys_have_is_the_layout():
    (layout,) = layouts = chosen("web/dt=%Y-%m-%d/", "api/dt=%Y-%m-%d/")
    assert told(layouts) == [("*", "dt=%Y-%m-%d", 0, 600)]
    assert len(set(layout.partition_of.values())) == 60
    assert (layout.begin, layout.end) == (DAYS[0].timestamp(), DAYS[-1].timestamp() + _DAY)


def test_accounts_and_regions_are_wildcards_even_where_there_is_one_of_each():
    layouts = chosen("AWSLogs/218007301253/CloudTrail/us-east-1/%Y/%m/%d/")
    assert told(layouts) == [("AWSLogs/*/CloudTrail/*", "%Y/%m/%d", 0, 300)]


def test_levels_that_name_a_column_keep_their_name_before_the_wildcard():
    layouts = chosen("region=eu/%Y/%m/%d/", "region=us/%Y/%m/%d/")
    assert told(layouts) == [("region=*", "%Y/%m/%d", 0, 600)]


def test_hours_are_part_of_the_date():
    assert told(chosen("%Y/%m/%d/07/", "%Y/%m/%d/08/")) == [("", "%Y/%m/%d/%H", 0, 600)]


def test_a_few_keys_without_hours_do_not_take_the_hours_from_all_others():
    stray = objects(["%Y/%m/%d/"], each=1)
    layouts = layouts_of([*objects(["%Y/%m/%d/07/"], each=200), *stray])
    assert told(layouts) == [("", "%Y/%m/%d/%H", 0, 6_000)]


def test_hours_that_half_of_the_keys_have_are_left_below_their_day():
    assert told(chosen("%Y/%m/%d/", "%Y/%m/%d/07/")) == [("", "%Y/%m/%d", 0, 600)]


def test_names_like_hours_among_others_are_no_hours():
    layouts = chosen("%Y/%m/%d/07/", "%Y/%m/%d/31/", "%Y/%m/%d/x/", "%Y/%m/%d/y/")
    assert told(layouts) == [("", "%Y/%m/%d", 0, 1_200)]


def test_two_layouts_beside_each_other_have_each_their_own_source():
    layouts = chosen("app/%Y/%m/%d/", "web/day=%Y-%m-%d/")
    assert sorted(told(layouts)) == [
        ("app", "%Y/%m/%d", 0, 300),
        ("web", "day=%Y-%m-%d", 0, 300),
    ]


def test_dated_and_undated_keys_beside_each_other_have_each_their_own_source():
    layouts = layouts_of([*objects(["app/%Y/%m/%d/"]), *objects(["misc/a/", "misc/b/"], each=150)])
    assert sorted(told(layouts)) == [("app", "%Y/%m/%d", 0, 300), ("misc", None, 1, 300)]


def test_undated_keys_that_no_source_holds_alone_are_in_no_layout():
    layouts = layouts_of([*objects(["%Y/%m/%d/"]), *objects([""], each=200)])
    assert told(layouts) == [("", "%Y/%m/%d", 0, 300)]


def test_dates_without_zeros_in_front_are_levels_like_others():
    layouts = layouts_of(
        one for day in DAYS for one in objects([f"{day.year}/{day.month}/{day.day}/"])
    )
    assert told(layouts) == [("", None, 3, 300)]
    assert "without zeros" in layouts[0].why


def test_levels_below_the_date_that_name_columns_are_kept_by_a_depth():
    layouts = chosen("dt=%Y-%m-%d/region=eu/", "dt=%Y-%m-%d/region=us/")
    assert told(layouts) == [("", None, 2, 600)]
    assert "name columns" in layouts[0].why


def test_keys_without_levels_are_one_partition():
    assert told(chosen("", each=50)) == [("", None, 0, 50)]


def test_the_deepest_level_that_all_keys_have_is_a_partition():
    assert told(chosen("web/errors/", "api/errors/")) == [("", None, 2, 20)]


def test_a_directory_for_each_object_is_no_partition():
    found = objects([f"req-{n:x}/" for n in range(500)], each=1)
    assert told(layouts_of(found)) == [("", None, 0, 500)]


def test_small_directories_are_joined_to_larger_partitions():
    found = objects([f"{n % 4}x/{n:03}/" for n in range(200)], each=3)
    assert told(layouts_of(found)) == [("", None, 1, 600)]


def test_keys_with_an_empty_level_are_in_no_layout():
    found = [*objects(["%Y/%m/%d/"]), *objects(["//", "a/../"], each=5)]
    assert told(layouts_of(found)) == [("", "%Y/%m/%d", 0, 300)]


def test_a_whole_bucket_without_dates_is_narrowed_to_the_level_that_all_keys_share():
    assert told(layouts_of(objects(["web/", "api/"]), prefix="")) == [("logs", None, 1, 20)]
