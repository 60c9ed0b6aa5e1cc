"""Source, destination and state: what a URI may be, and that none contains another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.uris import S3Uri, parse_source


def locations(source: str, destination: str, state: str | None = None) -> Settings:
    given_input = {"s3_source_uri": source, "s3_destination_uri": destination}
    return Settings.from_input(
        given_input if state is None else given_input | {"s3_state_uri": state}
    )


BAD_URIS = [
    None,
    "",
    "logs",
    "/logs",
    "S3://bucket/logs",
    "s3a://bucket/logs",
    "https://bucket.s3.amazonaws.com/logs",
    "s3://",
    "s3:///logs",
    "s3://b/logs",
    "s3://-bucket/logs",
    "s3://buck..et/logs",
    "s3://bucket name/logs",
    "s3://*/logs",
    "s3://arn:aws:s3:us-east-1:1:accesspoint/x/logs",
    "s3://bucket//logs",
    "s3://bucket/logs//",
    "s3://bucket/a/../b",
    "s3://bucket/./b",
    "s3://bucket/a\nb/",
    "s3://bucket/logs ",
    "s3://bucket/" + "x" * 513,
    7,
]


@pytest.mark.parametrize("field", ["s3_source_uri", "s3_destination_uri", "s3_state_uri"])
def test_what_is_no_s3_uri_is_refused_by_field(field: str) -> None:
    good = {"s3_source_uri": "s3://source/a", "s3_destination_uri": "s3://lake/b"}
    for uri in BAD_URIS:
        # null is the documented default of s3_state_uri.
        if (field, uri) == ("s3_state_uri", None):
            continue
        with pytest.raises(InvalidInput) as caught:
            Settings.from_input({**good, field: uri})
        assert (caught.value.field, caught.value.value) == (field, uri)
        assert "s3://bucket/prefix/" in caught.value.accepted, uri


@pytest.mark.parametrize("field", ["s3_source_uri", "s3_destination_uri", "s3_state_uri"])
@pytest.mark.parametrize(
    ("bucket", "reason"),
    [
        ("lake--use1-az4--x-s3", "directory buckets are not supported"),
        ("logs-ap-1234abcdefghijklmnopqrs-s3alias", "access points are not supported"),
        ("logs-1234--ol-s3", "access points are not supported"),
        ("arn:aws:s3:us-east-1:123456789012:accesspoint/logs", "access points are not supported"),
        ("mfzwi23gnjvgw.mrap", "Multi-Region Access Points are not supported"),
        ("arn:aws:s3::123456789012:accesspoint/mfzwi.mrap", "Multi-Region Access Points are not"),
        ("logs-o0123456789--op-s3", "S3 on Outposts is not supported"),
        ("arn:aws:s3-outposts:us-east-1:1:outpost/op-1/bucket/x", "S3 on Outposts is not"),
    ],
)
def test_what_is_no_general_purpose_bucket_is_refused_with_its_reason(
    field: str, bucket: str, reason: str
) -> None:
    good = {"s3_source_uri": "s3://source/a", "s3_destination_uri": "s3://lake/b"}
    with pytest.raises(InvalidInput, match=f"{field}: .*; {reason}") as caught:
        Settings.from_input({**good, field: f"s3://{bucket}/logs/"})
    assert "\n" not in str(caught.value)


def test_names_that_merely_resemble_reserved_ones_are_buckets() -> None:
    for bucket in ("x-s3", "my-s3alias-logs", "mrap", "logs.mrapped", "op-s3"):
        assert S3Uri.parse("s3_state_uri", f"s3://{bucket}/").bucket == bucket


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("s3://bucket", "s3://bucket/"),
        ("s3://bucket/", "s3://bucket/"),
        ("s3://bucket/a", "s3://bucket/a/"),
        ("s3://bucket/a/b=1/", "s3://bucket/a/b=1/"),
        ("s3://bucket/gr\u00fc\u00dfe/\u65e5", "s3://bucket/gr\u00fc\u00dfe/\u65e5/"),
    ],
)
def test_a_uri_ends_in_a_slash_however_it_was_written(uri: str, normal: str) -> None:
    assert S3Uri.parse("s3_state_uri", uri).uri == normal
    assert locations(uri, "s3://lake/x").s3_source_uri == normal


def test_the_source_root_ends_before_the_first_wildcard() -> None:
    settings = locations("s3://trail/AWSLogs/*/CloudTrail/*/", "s3://lake/trail/")
    assert settings.source.root.uri == "s3://trail/AWSLogs/"
    assert settings.source.pattern == ("*", "CloudTrail", "*")
    assert parse_source("s3://trail/o-*").pattern == ("o-*",)
    assert parse_source("s3://trail/*/x").root == S3Uri("trail", "")


@pytest.mark.parametrize("field", ["s3_destination_uri", "s3_state_uri"])
def test_only_the_source_may_have_wildcards(field: str) -> None:
    good = {"s3_source_uri": "s3://source/a/*", "s3_destination_uri": "s3://lake/b"}
    with pytest.raises(InvalidInput, match="without wildcards"):
        Settings.from_input({**good, field: "s3://other/a/*"})


def test_a_double_asterisk_is_refused_because_it_would_not_do_what_it_promises() -> None:
    with pytest.raises(InvalidInput, match=r"there is no \*\*"):
        locations("s3://source/**/logs", "s3://lake/b")


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("s3://b1x/logs/", "s3://b1x/logs/"),
        ("s3://b1x/logs", "s3://b1x/logs/compacted"),
        ("s3://b1x/logs/raw", "s3://b1x/logs"),
        ("s3://b1x", "s3://b1x/compacted"),
        ("s3://b1x/logs", "s3://b1x"),
        ("s3://b1x/AWSLogs/*/CloudTrail", "s3://b1x/AWSLogs/compacted"),
    ],
)
def test_source_and_destination_may_not_contain_each_other(source: str, destination: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        locations(source, destination, "s3://state/")
    assert caught.value.field == "s3_destination_uri"
    assert "neither contains the source" in caught.value.accepted


def test_names_that_merely_begin_alike_do_not_contain_each_other() -> None:
    settings = locations("s3://b1x/logs", "s3://b1x/logs-compacted")
    assert settings.s3_state_uri == "s3://b1x/_compactor/logs-compacted/"


def test_a_whole_bucket_as_destination_needs_its_state_in_another_bucket() -> None:
    with pytest.raises(InvalidInput, match=r"s3_destination_uri: .*s3_state_uri in another bucket"):
        locations("s3://source/logs", "s3://lake")
    with pytest.raises(InvalidInput, match=r"s3_state_uri: .*nor lies in it"):
        locations("s3://source/logs", "s3://lake", "s3://lake/state/")
    assert locations("s3://source/logs", "s3://lake", "s3://state").state == S3Uri("state", "")


@pytest.mark.parametrize(
    "state",
    [
        "s3://lake/data/",
        "s3://lake/data/state/",
        "s3://lake/",
        "s3://source/logs/state",
        "s3://source/",
    ],
)
def test_the_state_lies_outside_the_source_and_the_destination(state: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        locations("s3://source/logs/", "s3://lake/data/", state)
    assert caught.value.field == "s3_state_uri"


def test_a_destination_whose_default_state_would_lie_in_the_source_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"s3_state_uri: 's3://b1x/_compactor/data/'"):
        locations("s3://b1x/_compactor/", "s3://b1x/data/")


segments = st.lists(st.sampled_from(["a", "b", "a-b", "aa"]), max_size=4)


@given(segments, segments)
def test_locations_overlap_just_when_one_path_begins_with_the_other(
    one: list[str], two: list[str]
) -> None:
    first, second = (S3Uri.parse("x", "s3://bucket/" + "/".join(path)) for path in (one, two))
    shorter = min(len(one), len(two))
    expected = one[:shorter] == two[:shorter]
    assert first.overlaps(second) is second.overlaps(first) is expected
    assert not first.overlaps(S3Uri("other", second.prefix))
