from __future__ import annotations

import pytest

from compactor_cli.demo_layout import layout_of


@pytest.mark.parametrize(
    ("keys", "parents", "date_format"),
    [
        (["2026/01/02/a", "2026/01/03/b"], 0, "%Y/%m/%d"),
        (["x/y/2026/01/02/a"], 2, "%Y/%m/%d"),
        (["x/2026/01/02/23/a"], 1, "%Y/%m/%d/%H"),
        (["x/dt=2026-01-02/a"], 1, "dt=%Y-%m-%d"),
        (["x/2026-01-02/a"], 1, "%Y-%m-%d"),
        (["year=2026/month=01/day=02/a"], 0, "year=%Y/month=%m/day=%d"),
        (["year=2026/month=01/day=02/hour=03/a"], 0, "year=%Y/month=%m/day=%d/hour=%H"),
    ],
)
def test_a_date_layout_is_recognised_below_any_parents(keys, parents, date_format):
    layout = layout_of(keys)
    assert (layout.parents, layout.date_format) == (parents, date_format)
    assert layout.objects == len(keys)


def test_the_window_reaches_from_the_first_day_to_the_last():
    fields = layout_of(["a/2026/03/05/x", "b/2025/12/31/x"]).fields("s3://demo/logs/")
    assert fields == {
        "s3_source_uri": "s3://demo/logs/*/",
        "date_format": "%Y/%m/%d",
        "start": "2025-12-31",
        "end": "2026-03-05",
    }


@pytest.mark.parametrize(
    "keys",
    [
        ["a.log", "b/c.log"],
        ["2026/13/01/a", "2026/12/32/b"],
        ["2026/02/30/a"],
        ["2026/01/02"],
        ["a/2026/01/02/x", "a/b/2026/01/02/x"],
    ],
)
def test_without_a_common_date_layout_all_is_one_partition(keys):
    layout = layout_of(keys)
    assert layout.date_format is None
    assert layout.fields("s3://demo/logs/") == {"s3_source_uri": "s3://demo/logs/"}


def test_a_stray_note_does_not_hide_the_layout_of_the_logs():
    keys = [f"app/2026/01/{day:02}/x" for day in range(1, 20)]
    layout = layout_of(["README", *keys])
    assert layout.date_format == "%Y/%m/%d"
    assert layout.objects == 19
