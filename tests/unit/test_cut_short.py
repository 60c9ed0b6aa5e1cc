"""A store that always sends less than it should is given up in seconds, by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compactor.errors import InvalidInput, SourceChanged, TransientStoreError
from compactor.model import SourceObject
from compactor.s3.store import S3Store, make_client
from tests.support.s3_requests import ETAG, NoTime
from tests.support.scripted_s3 import Answer, Asked, ScriptedS3, scripted_s3

MIB = 1 << 20
HEADERS = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}
Answers = Callable[[Asked], Answer]


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with scripted_s3() as script:
        yield script


def answers(
    size: int, asked: Asked, *, ends: bool = False, told: int = 0, etag: str = ETAG
) -> Answer:
    """What is asked for, of an object of zeros.

    Args:
        size: of the object.
        asked: the request.
        ends: half of it comes, and the connection ends.
        told: so many bytes less are told, and come.
        etag: of the object.
    """
    headers = HEADERS | {"ETag": f'"{etag}"'}
    if asked.method == "HEAD":
        return Answer(200, b"", headers)
    first, last = 0, size - 1
    if wanted := asked.headers.get("range"):
        begin, end = wanted.removeprefix("bytes=").split("-")
        first, last = int(begin), int(end or last)
        headers["Content-Range"] = f"bytes {first}-{last - told}/{size}"
    length = max(0, last + 1 - first - told)
    return Answer(206 if wanted else 200, bytes(length), headers, length // 2 if ends else None)


def read(store: S3Store, size: int) -> int:
    """Bytes of a source, however they come."""
    (body,) = store.read_sources([SourceObject("b", "k", ETAG, size, 0.0)])
    if body.error is not None:
        raise body.error
    return sum(map(len, body.chunks() if body.chunks is not None else [body.content or b""]))


@pytest.mark.parametrize("size", [500, MIB, 9 * MIB], ids=["small", "held", "streamed"])
@pytest.mark.parametrize("how", [{"ends": True}, {"told": 1}, {"told": 10**9}])
@pytest.mark.parametrize("libcurl", [True, False])
def test_a_source_of_which_always_less_comes_is_given_up_in_seconds(
    s3: ScriptedS3, size: int, how: dict[str, Any], libcurl: bool
) -> None:
    time = NoTime()
    client = make_client(s3.url)
    store = S3Store(client, threads=4, libcurl=libcurl, patience=time.patience())
    s3.answer = lambda asked: answers(size, asked, **how)
    began = time.now
    with pytest.raises(InvalidInput, match="endpoint: answers are cut short each time: get s3://b"):
        read(store, size)
    # Of ranges two are asked for at once.
    assert len(s3.asked) <= 1 + 2 * 9
    assert time.now - began < 60


@pytest.mark.parametrize("cut", [1, 7])
@pytest.mark.parametrize("size", [500, MIB, 9 * MIB], ids=["small", "held", "streamed"])
def test_answers_that_are_cut_short_for_a_while_cost_nothing_but_that(
    s3: ScriptedS3, size: int, cut: int
) -> None:
    store = S3Store(make_client(s3.url), threads=4, patience=NoTime().patience())
    s3.answer = lambda asked: answers(size, asked, ends=len(s3.asked) <= cut)
    assert read(store, size) == size


def test_an_object_that_became_shorter_is_another_one_and_not_the_stores_fault(
    s3: ScriptedS3,
) -> None:
    store = S3Store(make_client(s3.url), threads=4, patience=NoTime().patience())
    s3.answer = lambda asked: answers(500, asked, told=1, etag="another")
    with pytest.raises(SourceChanged):
        read(store, 500)
    assert len(s3.asked) <= 2


def test_a_store_that_is_out_of_order_for_other_reasons_is_waited_for(s3: ScriptedS3) -> None:
    time = NoTime()
    store = S3Store(make_client(s3.url), threads=4, patience=time.patience())
    # Cut short now and then, and else busy.
    cut = Answer(200, bytes(500), HEADERS, 9)
    s3.answer = lambda asked: cut if len(s3.asked) % 3 else Answer(503)
    began = time.now
    with pytest.raises(TransientStoreError):
        read(store, 500)
    assert time.now - began > 60


def test_an_output_that_breaks_off_each_time_is_given_up(s3: ScriptedS3) -> None:
    store = S3Store(make_client(s3.url), threads=4, patience=NoTime().patience())
    size = 200_000

    def stingy(asked: Asked) -> Answer:
        whole = answers(size, asked)
        return Answer(whole.status, whole.body, whole.headers, sent=10)

    s3.answer = stingy
    with pytest.raises(InvalidInput, match="80 of 200,000 bytes, in 8 answers that each broke off"):
        list(store.open("b", "k"))
    s3.answer = lambda asked: stingy(asked) if len(s3.asked) % 8 else answers(size, asked)
    assert sum(map(len, store.open("b", "k"))) == size


@pytest.mark.parametrize(
    "ask", [lambda s: s.get("b", "k"), lambda s: s.get_range("b", "k", 0, 500)]
)
def test_state_that_is_cut_short_each_time_is_reported_as_well(
    s3: ScriptedS3, ask: Callable[[S3Store], bytes]
) -> None:
    store = S3Store(make_client(s3.url), threads=4, patience=NoTime().patience())
    s3.answer = lambda asked: answers(500, asked, ends=True)
    with pytest.raises(InvalidInput, match="cut short each time"):
        ask(store)
    assert len(s3.asked) == 8
