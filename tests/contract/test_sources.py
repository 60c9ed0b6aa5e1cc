"""Sources: read in order, and only what was listed."""

from __future__ import annotations

import pytest

from compactor.attributes import Attributes
from compactor.errors import SourceChanged
from tests.contract.benches import Bench
from tests.contract.cases import LARGE, MIB, content_of, read


def test_sources_come_in_the_order_asked_for_whatever_their_size(bench: Bench) -> None:
    bodies = {f"k{n:02}": bytes([n]) * (n % 7 * 1_000) for n in range(40)} | {"k99": LARGE}
    sources = [bench.seed(key, body) for key, body in bodies.items()]
    sources = sources[::-2] + sources[::2]
    assert [body.source for body in bench.store.read_sources(sources)] == sources
    assert read(bench.store, *sources) == [bodies[source.key] for source in sources]


def test_a_large_source_comes_in_chunks_of_bounded_size(bench: Bench) -> None:
    large, small = bench.seed("large", LARGE), bench.seed("small")
    for body in bench.store.read_sources([large, small]):
        if body.source == small:
            assert body.content == b"content"
            continue
        assert body.content is None
        assert body.chunks is not None
        chunks = list(body.chunks())
        assert b"".join(chunks) == LARGE
        assert max(map(len, chunks)) <= 8 * MIB


def test_a_source_of_no_bytes_costs_no_request(bench: Bench) -> None:
    empty = bench.seed("empty", b"")
    before = dict(bench.store.requests.snapshot())
    assert read(bench.store, empty) == [b""]
    assert dict(bench.store.requests.snapshot()) == before


@pytest.mark.parametrize("new", [b"changed", b"longer than before", b"", None])
def test_a_source_that_changed_or_went_is_reported_in_its_place(
    bench: Bench, new: bytes | None
) -> None:
    first, second, third = (bench.seed(key, b"content") for key in ("a", "b", "c"))
    if new is None:
        bench.remove("b")
    else:
        bench.seed("b", new)
    bodies = list(bench.store.read_sources([first, second, third]))
    assert [body.source for body in bodies] == [first, second, third]
    assert [body.content for body in bodies] == [b"content", None, b"content"]
    error = bodies[1].error
    assert isinstance(error, SourceChanged)
    assert (error.key, error.etag, error.gone) == ("b", second.etag, new is None)
    assert bodies[0].error is bodies[2].error is None


@pytest.mark.parametrize("gone", [True, False])
def test_a_large_source_that_changed_or_went_gives_no_byte(bench: Bench, gone: bool) -> None:
    large = bench.seed("large", LARGE)
    if gone:
        bench.remove("large")
    else:
        bench.seed("large", b"x" + LARGE[1:])
    (body,) = bench.store.read_sources([large])
    with pytest.raises(SourceChanged) as error:
        content_of(body)
    assert error.value.gone is gone


def test_a_range_of_a_source_is_read_only_while_it_is_what_was_listed(bench: Bench) -> None:
    source = bench.seed("k", b"0123456789")
    assert bench.store.read_range(source, 2, 3) == b"234"
    assert bench.store.read_range(source, 9, 1) == b"9"
    bench.seed("k", b"9876543210")
    with pytest.raises(SourceChanged):
        bench.store.read_range(source, 2, 3)
    bench.remove("k")
    with pytest.raises(SourceChanged):
        bench.store.read_range(source, 2, 3)


def test_a_source_written_again_with_the_same_bytes_is_the_same_source(bench: Bench) -> None:
    source = bench.seed("k")
    again = bench.seed("k")
    assert again.etag == source.etag
    assert read(bench.store, source) == [b"content"]


@pytest.mark.parametrize("body", [b"content", bytes(MIB), LARGE], ids=["small", "held", "streamed"])
def test_what_is_kept_beside_the_bytes_is_returned_as_it_was_written(
    bench: Bench, body: bytes
) -> None:
    given = Attributes("gzip", (("owner", "Ann B"),), "text/plain; charset=utf-8")
    bench.store.create(bench.bucket, "described", body, attributes=given)
    bench.seed("plain", body)
    (page,) = (one for one in bench.store.list_objects(bench.bucket, "") if one)
    found = {one.source.key: one.attributes for one in bench.store.read_sources(page)}
    assert found == {"described": given, "plain": None}
