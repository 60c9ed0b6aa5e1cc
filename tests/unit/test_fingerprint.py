"""The digest of a listing: the same wherever pages end, and however they were read."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.fingerprint import Fingerprint, Seen
from compactor.model import SourceObject
from compactor.s3.list_parser import page_of

ONE = SourceObject("b", "logs/a.json", "e" * 32, 10, 1_767_323_045.0)


def seen(*pages: list[SourceObject]) -> Seen:
    made = Fingerprint()
    for page in pages:
        made.add(page)
    return made.seen


def page(*entries: tuple[str, str, str, int, str], unusual: bool = False) -> list[SourceObject]:
    """As S3 answers; of an unusual form each object is read by itself."""
    rows = "".join(
        f"<Contents>{'<Owner><ID>x</ID></Owner>' if unusual else ''}"
        f"<Key>{quote(key, safe='/')}</Key><LastModified>{at}</LastModified>"
        f"<ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size><StorageClass>{kind}</StorageClass>"
        "</Contents>"
        for key, at, etag, size, kind in entries
    )
    text = (
        '<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType>'
        f"<IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
    )
    found = page_of(text.encode())
    assert found is not None
    return found.objects("b")  # type: ignore[return-value] # a sequence will do


ENTRIES = (
    ("logs/a b+c%d.json", "2026-01-02T03:04:05.000Z", "a" * 32, 1, "STANDARD"),
    ("logs/größe.json", "2026-01-02T03:04:05.678Z", "b" * 32 + "-2", 20, "GLACIER_IR"),
    ("logs/z", "2026-01-02T03:04:05Z", "c" * 32, 0, "STANDARD"),
)


@pytest.mark.parametrize("entries", [ENTRIES, ENTRIES[:2], ENTRIES[2:], ENTRIES[:1]])
def test_a_page_gives_the_same_summed_up_made_into_objects_and_read_one_by_one(
    entries: tuple[tuple[str, str, str, int, str], ...],
) -> None:
    summed = seen(page(*entries))
    made = page(*entries)
    assert len(list(made)) == len(entries)
    assert summed == seen(made) == seen(list(made)) == seen(page(*entries, unusual=True))
    assert (summed.objects, summed.bytes) == (len(entries), sum(one[3] for one in entries))


@given(st.lists(st.integers(0, 10), max_size=6))
def test_where_pages_end_makes_no_difference(sizes: list[int]) -> None:
    objects = [replace(ONE, key=f"k{number:03}", size=number) for number in range(sum(sizes))]
    pages, start = [], 0
    for size in sizes:
        pages.append(objects[start : start + size])
        start += size
    assert seen(*pages) == seen(objects)


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, key="logs/b.json"),
        replace(ONE, etag="f" * 32),
        replace(ONE, size=11),
        replace(ONE, last_modified=ONE.last_modified + 1),
        replace(ONE, last_modified=ONE.last_modified + 0.001),
        replace(ONE, storage_class="GLACIER"),
        replace(ONE, restored_until=1.0),
    ],
)
def test_whatever_a_listing_says_of_an_object_counts(other: SourceObject) -> None:
    assert seen([other]).digest != seen([ONE]).digest


def test_a_value_is_not_the_beginning_of_the_next() -> None:
    first = [replace(ONE, key="ab"), replace(ONE, key="c")]
    second = [replace(ONE, key="a"), replace(ONE, key="bc")]
    assert seen(first) != seen(second)


def test_a_copy_goes_its_own_way() -> None:
    made = Fingerprint()
    made.add([ONE])
    other = made.copy()
    other.add([ONE])
    assert made.seen == seen([ONE])
    assert other.seen == seen([ONE, ONE])
