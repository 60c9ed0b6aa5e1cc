"""The layout of keys: what fits it, and that what is not clear is shown as such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from compactor.model import SourceObject
from compactor.scanning.choosing import Choice, choose
from compactor.scanning.layouts import Keys
from compactor.scanning.listing_sums import Arrivals, Sizes

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


def keys_of(found: Iterable[SourceObject]) -> Keys:
    keys = Keys("logs/")
    for one in sorted(found, key=lambda one: one.key):
        keys.add(one)
    return keys


def chosen(*levels: str, each: int = 10) -> Choice:
    return choose(keys_of(objects(levels, each)), whole_bucket=False)


def told(choice: Choice) -> list[tuple[str, str | None, int, int]]:
    return [
        ("/".join((*one.root, *one.pattern)), one.date_format, one.depth, one.objects)
        for one in choice.layouts
    ]


def test_a_date_that_all_keys_have_is_clear():
    choice = chosen("web/dt=%Y-%m-%d/", "api/dt=%Y-%m-%d/")
    assert choice.clear
    assert told(choice) == [("*", "dt=%Y-%m-%d", 0, 600)]
    (layout,) = choice.layouts
    assert (layout.partitions, layout.outputs, layout.kinds) == (60, 60, (("names", 2),))
    assert (layout.begin, layout.end) == (DAYS[0].timestamp(), DAYS[-1].timestamp() + _DAY)


def test_accounts_and_regions_are_wildcards_even_where_there_is_one_of_each():
    choice = chosen("AWSLogs/218007301253/CloudTrail/us-east-1/%Y/%m/%d/")
    assert told(choice) == [("AWSLogs/*/CloudTrail/*", "%Y/%m/%d", 0, 300)]
    assert choice.layouts[0].kinds == (("account", 1), ("region", 1))


def test_levels_that_name_a_column_keep_their_name_before_the_wildcard():
    choice = chosen("region=eu/%Y/%m/%d/", "region=us/%Y/%m/%d/")
    assert told(choice) == [("region=*", "%Y/%m/%d", 0, 600)]


def test_hours_are_part_of_the_date():
    assert told(chosen("%Y/%m/%d/07/", "%Y/%m/%d/08/")) == [("", "%Y/%m/%d/%H", 0, 600)]


def test_a_few_keys_without_hours_do_not_take_the_hours_from_all_others():
    stray = objects(["%Y/%m/%d/"], each=1)
    keys = keys_of([*objects(["%Y/%m/%d/07/"], each=200), *stray])
    choice = choose(keys, whole_bucket=False)
    assert (choice.clear, told(choice)) == (True, [("", "%Y/%m/%d/%H", 0, 6_000)])


def test_hours_that_half_of_the_keys_have_are_not_clear():
    choice = chosen("%Y/%m/%d/", "%Y/%m/%d/07/")
    assert (choice.clear, choice.either) == (False, True)
    assert told(choice) == [("", "%Y/%m/%d", 0, 600), ("", "%Y/%m/%d/%H", 0, 300)]


def test_names_like_hours_among_others_are_no_hours():
    choice = chosen("%Y/%m/%d/07/", "%Y/%m/%d/31/", "%Y/%m/%d/x/", "%Y/%m/%d/y/")
    assert (choice.clear, told(choice)) == (True, [("", "%Y/%m/%d", 0, 1_200)])


def test_a_day_above_twelve_separates_day_and_month():
    assert told(chosen("%d/%m/%Y/")) == [("", "%d/%m/%Y", 0, 300)]


def test_where_nothing_separates_day_and_month_both_are_shown():
    days = [day.strftime("%d/%m/%Y/") for day in DAYS[:9]]
    choice = choose(keys_of(objects(days)), whole_bucket=False)
    assert (choice.clear, choice.either) == (False, True)
    assert sorted(one[1] or "" for one in told(choice)) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert "day and month" in choice.why


def test_two_layouts_beside_each_other_have_each_their_own_source():
    choice = chosen("app/%Y/%m/%d/", "web/day=%Y-%m-%d/")
    assert (choice.clear, choice.either) == (False, False)
    assert sorted(told(choice)) == [
        ("app", "%Y/%m/%d", 0, 300),
        ("web", "day=%Y-%m-%d", 0, 300),
    ]


def test_dated_and_undated_keys_beside_each_other_have_each_their_own_source():
    found = [*objects(["app/%Y/%m/%d/"]), *objects(["misc/a/", "misc/b/"], each=150)]
    choice = choose(keys_of(found), whole_bucket=False)
    assert not choice.clear
    assert sorted(told(choice)) == [("app", "%Y/%m/%d", 0, 300), ("misc", None, 1, 300)]


def test_undated_keys_that_no_source_holds_alone_are_proposed_none():
    found = [*objects(["%Y/%m/%d/"]), *objects([""], each=200)]
    choice = choose(keys_of(found), whole_bucket=False)
    assert (choice.clear, told(choice)) == (False, [("", "%Y/%m/%d", 0, 300)])


def test_dates_without_zeros_in_front_are_levels_like_others():
    found = [one for day in DAYS for one in objects([f"{day.year}/{day.month}/{day.day}/"])]
    choice = choose(keys_of(found), whole_bucket=False)
    assert (choice.clear, told(choice)) == (True, [("", None, 3, 300)])
    assert "without zeros" in choice.why


def test_levels_below_the_date_that_name_columns_are_kept_by_a_depth():
    choice = chosen("dt=%Y-%m-%d/region=eu/", "dt=%Y-%m-%d/region=us/")
    assert (choice.clear, told(choice)) == (True, [("", None, 2, 600)])
    assert "name columns" in choice.why


def test_keys_without_levels_are_one_partition():
    assert told(chosen("", each=50)) == [("", None, 0, 50)]


def test_the_deepest_level_that_all_keys_have_is_a_partition():
    assert told(chosen("web/errors/", "api/errors/")) == [("", None, 2, 20)]


def test_a_directory_for_each_object_is_no_partition():
    found = objects([f"req-{n:x}/" for n in range(500)], each=1)
    assert told(choose(keys_of(found), whole_bucket=False)) == [("", None, 0, 500)]


def test_small_directories_are_shown_beside_larger_ones():
    found = objects([f"{n % 4}x/{n:03}/" for n in range(200)], each=3)
    choice = choose(keys_of(found), whole_bucket=False)
    assert (choice.clear, choice.either) == (False, True)
    assert [(one.depth, one.partitions) for one in choice.layouts] == [(1, 4), (2, 200)]


def test_keys_with_an_empty_level_are_counted_and_named_by_no_source():
    found = [*objects(["%Y/%m/%d/"]), *objects(["//", "a/../"], each=5)]
    keys = keys_of(found)
    assert keys.odd == 10
    assert told(choose(keys, whole_bucket=False)) == [("", "%Y/%m/%d", 0, 300)]


def test_many_ways_and_names_take_no_more_memory_than_few():
    found = [*objects([f"app{n}x/h{n:04}-%Y-%m-%d/" for n in range(40)], each=1)]
    keys = keys_of(found)
    assert len(keys.ways) <= 256
    names = keys_of(objects([f"u{n:05}/2026/10/01/" for n in range(1_500)], each=1))
    (way,) = [one for one in names.ways.values() if one.format == "%Y/%m/%d"]
    assert (len(way.levels[0].names), way.levels[0].segment, way.partitions) == (1_000, "*", 1_500)


def test_outputs_are_counted_by_the_default_target():
    size = 40 << 20
    found = (
        SourceObject("mine", f"logs/2026/10/01/{n:04}.json.gz", "0" * 32, size, 0.0)
        for n in range(20)
    )
    (layout,) = choose(keys_of(found), whole_bucket=False).layouts
    assert layout.outputs == 1 + 20 * size // (128 << 20)


def test_the_histogram_has_empty_objects_and_those_below_128_kib():
    sizes = Sizes()
    for size in (0, 1, 100, (128 << 10) - 1, 128 << 10, 5 << 30):
        sizes.add(size)
    assert sizes.objects[0] == 1
    assert sizes.small == (4, 101 + (128 << 10) - 1)
    assert sizes.objects[-1] == 1


def test_the_usual_day_is_the_median_of_whole_days_with_those_without_arrivals():
    arrivals = Arrivals()
    for day, many in enumerate([1, 10, 0, 30, 20, 10, 500]):
        for n in range(many):
            arrivals.add(SourceObject("mine", f"{n}", "", 7, (20_000 + day) * _DAY + n))
    assert arrivals.usual_day == (10.0, 70.0, 5)
    assert Arrivals().usual_day is None
