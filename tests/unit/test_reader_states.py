"""Whatever is listed and committed, a reader sees each record in one place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import IntegrityError, InvalidInput
from compactor.model import SourceObject
from compactor.readers.manifests import decode_manifest, encode_manifest, manifest_prefix
from compactor.readers.states import Decision, Held, Shown, decide, has_rows, is_hidden
from tests.support.examples import PARTITION, settings, source

OUTPUTS = "compacted/2026/01/02/"


def output(number: int) -> SourceObject:
    return replace(source(""), bucket="lake", key=f"{OUTPUTS}compacted-{number}.json")


@dataclass(frozen=True)
class There:
    """A partition as it stands: one record for each source, by its number.

    Attributes:
        stands: sources that are there.
        held: of each source, the number of the readable output that holds it; None for none.
        foreign: something else lies below the prefix of the outputs.
    """

    stands: tuple[bool, ...]
    held: tuple[int | None, ...]
    foreign: bool

    @property
    def found(self) -> Held:
        outputs = sorted({one for one in self.held if one is not None})
        loose = [
            source(f"{number}.json")
            for number, (stands, held) in enumerate(zip(self.stands, self.held, strict=True))
            if stands and held is None
        ]
        standing = all(
            stands or held is None for stands, held in zip(self.stands, self.held, strict=True)
        )
        return Held(tuple(loose), tuple(map(output, outputs)), standing, self.foreign)

    def read(self, decision: Decision | None) -> Counter[int]:
        """What an engine reads."""
        found: Counter[int] = Counter()
        for number, (stands, held) in enumerate(zip(self.stands, self.held, strict=True)):
            places = [("source", f"{PARTITION.prefix}{number}.json")] if stands else []
            if held is not None:
                places.append(("lake", f"{OUTPUTS}compacted-{held}.json"))
            found[number] = sum(_is_read(place, decision) for place in places)
        return found

    @property
    def there(self) -> set[int]:
        pairs = enumerate(zip(self.stands, self.held, strict=True))
        return {number for number, (stands, held) in pairs if stands or held is not None}


def _is_read(place: tuple[str, str], decision: Decision | None) -> bool:
    if decision is None:
        return False
    if decision.shown is Shown.LISTED:
        return place in decision.names
    return place[0] == ("source" if decision.shown is Shown.RAW else "lake")


@st.composite
def partitions(draw: st.DrawFn) -> There:
    count = draw(st.integers(0, 6))
    stands = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    held = draw(st.lists(st.one_of(st.none(), st.integers(0, 2)), min_size=count, max_size=count))
    return There(tuple(stands), tuple(held), draw(st.booleans()))


@given(partitions(), st.sampled_from([None, *Shown]), st.booleans())
def test_every_record_is_in_exactly_one_place_that_a_reader_sees(
    there: There, current: Shown | None, fresh: bool
) -> None:
    decision = decide(there.found, current, fresh=fresh)
    read = there.read(decision)
    assert {number for number, times in read.items() if times} == there.there
    assert max(read.values(), default=0) <= 1
    if decision is not None and decision.shown is Shown.COMPACTED:
        assert not there.foreign, "an engine would read what is none of ours"


@given(partitions(), st.sampled_from([Shown.COMPACTED, Shown.LISTED]), st.booleans())
def test_what_has_shown_outputs_never_shows_all_sources_again(
    there: There, current: Shown, fresh: bool
) -> None:
    decision = decide(there.found, current, fresh=fresh)
    assert decision is not None
    assert decision.shown is not Shown.RAW


@given(partitions(), st.sampled_from([None, *Shown]))
def test_a_table_of_outputs_shows_no_source(there: There, current: Shown | None) -> None:
    decision = decide(there.found, current, fresh=True, exact=False)
    read = there.read(decision)
    held = {number for number, one in enumerate(there.held) if one is not None}
    assert {number for number, times in read.items() if times} == held
    assert decision is None or all(bucket == "lake" for bucket, _ in decision.names)


def test_a_partition_that_is_open_shows_its_sources_until_one_of_them_is_gone() -> None:
    open_one = There((True, True), (0, None), foreign=False)
    assert decide(open_one.found, None, fresh=True) == Decision(Shown.RAW)
    closed = decide(open_one.found, Shown.RAW, fresh=False)
    assert closed is not None
    assert (closed.shown, len(closed.names)) == (Shown.LISTED, 2)
    cleaned = There((False, True), (0, None), foreign=False)
    gone = decide(cleaned.found, Shown.RAW, fresh=True)
    assert gone is not None
    assert gone.shown is Shown.LISTED


def test_what_nothing_is_known_of_is_not_added_to_the_table() -> None:
    assert decide(Held(), None, fresh=True) is None
    assert decide(Held(), Shown.COMPACTED, fresh=True) == Decision(Shown.LISTED)


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("a.json", False),
        ("_a.json", True),
        (".a", True),
        ("x/_tmp/a", True),
        ("x/a_b", False),
        ("x_/a", False),
    ],
)
def test_engines_pass_over_names_that_begin_with_an_underscore_or_a_dot(
    name: str, hidden: bool
) -> None:
    assert is_hidden(f"_logs/.x/{name}", "_logs/.x/") is hidden
    one = replace(source(""), key=f"logs/{name}")
    assert has_rows(one, "logs/") is not hidden
    assert not has_rows(replace(one, size=0), "logs/")


names = st.lists(
    st.tuples(
        st.sampled_from(["lake", "source"]),
        st.text(
            st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1
        ).filter(lambda key: not key.endswith("/")),
    ),
    unique=True,
)


@given(names)
def test_a_list_says_what_it_was_given(given_names: list[tuple[str, str]]) -> None:
    body = encode_manifest(given_names)
    assert decode_manifest(body, "it") == frozenset(given_names)
    assert b"\n\n" not in body
    assert not body.startswith(b"\n")


@pytest.mark.parametrize("key", ["", "a\nb", "a\rb", "a ", "a/", "a\u2028b", "a\x85", "\ud800"])
def test_a_key_that_a_line_cannot_say_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="reader_table"):
        encode_manifest([("lake", key)])


def test_nothing_is_listed_twice() -> None:
    with pytest.raises(InvalidInput, match="each object once"):
        encode_manifest([("lake", "a"), ("lake", "a")])


@pytest.mark.parametrize(
    "body", [b"s3://lake/a", b"\n", b"s3://lake/a\n\n", b"lake/a\n", b"s3://lake\n", b"\xff\n"]
)
def test_a_damaged_list_is_reported(body: bytes) -> None:
    with pytest.raises(IntegrityError, match="damaged"):
        decode_manifest(body, "s3://lake/manifest")
    with pytest.raises(IntegrityError, match="twice"):
        decode_manifest(b"s3://lake/a\ns3://lake/a\n", "s3://lake/manifest")


def test_each_switch_has_a_prefix_of_its_own_that_no_engine_hides() -> None:
    given_settings = settings(depth=1)
    hidden = replace(PARTITION, path="_x/.y/")
    bucket, prefix = manifest_prefix(given_settings, hidden, "a" * 32)
    assert bucket == "lake"
    assert not is_hidden(prefix, "")
    assert manifest_prefix(given_settings, hidden, "b" * 32)[1] != prefix
