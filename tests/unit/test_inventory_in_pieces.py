"""An inventory taken by several calls is what one call takes, whatever becomes of each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.clock import NoDeadline
from compactor.discovery.resume import Part
from compactor.errors import IntegrityError, ObjectMissing
from compactor.inventory import pages, taking
from compactor.inventory.inventory_listing import InventoryListing
from compactor.inventory.pages import DirectoryShelf, RunShelf
from compactor.inventory.taking import take_inventory, take_on
from compactor.model import SourceObject
from compactor.orchestration.discovery_step import Begun, begin
from compactor.ports import ObjectStore
from tests.support.document_tables import table_of
from tests.support.examples import NOW
from tests.support.examples import settings as settings_of
from tests.support.inventory import BUCKET, PLACE, URI, Inventory, inventory_of, row_of
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore

INVENTORY: dict[str, Any] = {"listing": f"inventory:{URI}"}
SETTINGS = settings_of(**INVENTORY)
RUN = "run-1"
HOME = f"_compactor/compacted/runs/{RUN}/listing/"


class Chances:
    """The time of one call: over as soon as one of these says so, by how often it is asked."""

    def __init__(self, goes_on: Iterator[bool]) -> None:
        self._goes_on = goes_on

    def remaining_seconds(self) -> float:
        return 1_000.0 if next(self._goes_on, True) else 0.0


def at_once() -> Chances:
    """No time at all."""
    return Chances(iter([False] * 10_000))


def source(name: str, age: int = 0) -> SourceObject:
    return SourceObject("source", f"logs/{name}", f"etag-{name}-{age}", 1 + age, NOW - 90_000 - age)


def delivered(inventory: Inventory) -> MemoryStore:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("source")
    store.add_bucket("lake")
    inventory.deliver(store)
    return store


def shelf_of(store: ObjectStore) -> RunShelf:
    return RunShelf(SETTINGS, RUN, store)


def listing_in(store: MemoryStore) -> dict[str, bytes]:
    """Pages and index of the listing, by name."""
    found = store.contents("lake", HOME)
    names = {key.removeprefix(HOME): body for key, body in found.items()}
    return {n: body for n, body in names.items() if n.startswith(("pages/", "index"))}


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "PAGE_ROWS", 3)
    monkeypatch.setattr(taking, "SORTED_ROWS", 2)


NAMES = st.lists(st.integers(0, 40).map(str), max_size=50)
FILES = st.lists(NAMES, min_size=1, max_size=6)


def inventory_with(files: list[list[str]]) -> Inventory:
    """Files with these names; the same name again is an older version of the object."""
    seen: dict[str, int] = {}
    rows: list[list[dict[str, str]]] = []
    for names in files:
        rows.append([])
        for name in names:
            rows[-1].append(row_of(source(name, seen.setdefault(name, 0))))
            seen[name] += 1
    return Inventory(NOW, rows)


@given(FILES, st.integers(1, 30), st.lists(st.booleans(), max_size=200))
def test_calls_that_stop_anywhere_make_the_pages_that_one_call_makes(
    files: list[list[str]], held_rows: int, goes_on: list[bool]
) -> None:
    whole, parted = (delivered(inventory_with(files)) for _ in range(2))
    take_inventory(SETTINGS, whole, shelf_of(whole), held_rows=held_rows)
    chances = iter(goes_on)
    for _ in range(1_000):
        time = Chances(chances)
        found = take_on(SETTINGS, parted, shelf_of(parted), time, held_rows=held_rows)
        if found is not None:
            break
    assert listing_in(parted) == listing_in(whole)


@given(FILES, st.integers(1, 30), st.data())
def test_a_call_that_dies_or_lives_on_beside_its_successor_spoils_nothing(
    files: list[list[str]], held_rows: int, data: st.DataObject
) -> None:
    whole, parted = (delivered(inventory_with(files)) for _ in range(2))
    take_inventory(SETTINGS, whole, shelf_of(whole), held_rows=held_rows)
    late: list[_Late] = []
    found = None
    for number in range(200):
        many = number < 30
        chances = data.draw(st.lists(st.booleans(), max_size=8 if many else 0))
        if many and data.draw(st.booleans()):
            # It has read the pieces, and goes on when others have come further.
            late.append(_Late(parted, Chances(iter(chances)), held_rows))
        comes_back = data.draw(st.booleans())
        if late and comes_back:
            late.pop().go_on()
        death = data.draw(st.integers(1, 20)) if many and data.draw(st.booleans()) else 0
        try:
            with _dies(parted, death):
                time = Chances(iter(chances))
                found = take_on(SETTINGS, parted, shelf_of(parted), time, held_rows=held_rows)
        except Crashed:
            continue
        if found is not None:
            break
    for one in late:
        one.go_on()
    assert found is not None
    assert listing_in(parted) == listing_in(whole)


@pytest.mark.parametrize("held_rows", [3, 100])
@pytest.mark.parametrize("late_reads", range(1, 6))
@pytest.mark.parametrize("others_read", [[1], [2], [1, 1], [2, 1], [3, 2], [1, 1, 1]])
def test_a_late_call_writes_over_nothing_that_others_have_laid_aside(
    others_read: list[int], late_reads: int, held_rows: int
) -> None:
    files = [[f"{number:02}" for number in range(start, 40, 5)] for start in range(5)]
    whole, parted = (delivered(inventory_with(files)) for _ in range(2))
    take_inventory(SETTINGS, whole, shelf_of(whole), held_rows=held_rows)
    late = _Late(parted, _files(late_reads), held_rows)
    for many in others_read:
        take_on(SETTINGS, parted, shelf_of(parted), _files(many), held_rows=held_rows)
    late.go_on()
    take_on(SETTINGS, parted, shelf_of(parted), NoDeadline(), held_rows=held_rows)
    assert listing_in(parted) == listing_in(whole)


def _files(many: int) -> Chances:
    """Time to read so many files."""
    # One is asked after the first file, and before each further one; each is timed, too.
    return Chances(iter([True] * (3 * many - 1) + [False] * 1_000))


class _Late:
    """A call that saw which pieces there were, and does the rest later."""

    def __init__(self, store: MemoryStore, time: Chances, held_rows: int) -> None:
        self._store, self._time, self._held_rows = store, time, held_rows
        self._seen = set(store.contents("lake", HOME))

    def go_on(self) -> None:
        shelf = _Past(self._store, self._seen)
        take_on(SETTINGS, self._store, shelf, self._time, held_rows=self._held_rows)


class _Past(RunShelf):
    """Of pieces and index it sees only what was there once."""

    def __init__(self, store: MemoryStore, seen: set[str]) -> None:
        super().__init__(SETTINGS, RUN, store)
        self._seen = seen

    def get(self, name: str) -> bytes:
        if name.startswith(("taken/", "index")) and HOME + name not in self._seen:
            raise ObjectMissing(name)
        return super().get(name)


class _dies:  # noqa: N801 - reads as a verb
    """Within it, a store's caller dies at a request; 0 for never."""

    def __init__(self, store: MemoryStore, number: int) -> None:
        self._store, self._left = store, number

    def __enter__(self) -> None:
        self._store.hooks.before.append(self._count)

    def __exit__(self, *_: object) -> None:
        self._store.hooks.before.remove(self._count)

    def _count(self, call: Call) -> None:
        self._left -= 1
        if self._left == 0:
            raise Crashed


def test_each_call_gets_on_however_little_time_it_has() -> None:
    names = [[f"{number:03}" for number in range(start, 90, 9)] for start in range(9)]
    store = delivered(inventory_with(names))
    calls = 1
    while take_on(SETTINGS, store, shelf_of(store), at_once(), held_rows=20) is None:
        calls += 1
    # Nine files, and 30 pages of 3.
    assert calls == 9 + 30
    assert len(listing_in(store)) == 31


def test_a_file_is_not_read_twice_by_calls_that_run_out_of_time() -> None:
    store = delivered(inventory_of([source(f"{n:03}") for n in range(60)], NOW, files=6))
    while take_on(SETTINGS, store, shelf_of(store), at_once(), held_rows=7) is None:
        pass
    opened = [call.key for call in store.calls if call.key and call.key.startswith(f"{PLACE}data/")]
    assert len(opened) == len(set(opened)) == 6


def test_calls_continue_the_inventory_that_was_begun_though_a_newer_one_is_there() -> None:
    given = {"listing": f"inventory:s3://{BUCKET}/{PLACE}"}
    settings = settings_of(**given)
    store = delivered(inventory_of([source(name) for name in "abc"], NOW))
    assert take_on(settings, store, shelf_of(store), at_once()) is None
    inventory_of([source("d")], NOW + 9, files=1).deliver(store, "2027-02-01T01-00Z")
    listing = take_on(settings, store, shelf_of(store), NoDeadline())
    assert listing is not None
    assert [one.key for one in every(listing)] == ["logs/a", "logs/b", "logs/c"]


def every(listing: InventoryListing) -> list[SourceObject]:
    return list(chain.from_iterable(listing.list_objects("source", "logs/")))


def test_an_inventory_that_changes_between_two_calls_is_reported() -> None:
    store = delivered(inventory_of([source(name) for name in "abc"], NOW))
    assert take_on(SETTINGS, store, shelf_of(store), at_once()) is None
    inventory_of([source("d")], NOW + 9).deliver(store)
    with pytest.raises(IntegrityError, match="not what it was when this run began"):
        take_on(SETTINGS, store, shelf_of(store), NoDeadline())


def test_a_piece_that_is_damaged_is_reported(tmp_path: Path) -> None:
    store, shelf = delivered(inventory_of([source("a")], NOW)), DirectoryShelf(tmp_path)
    assert take_on(SETTINGS, store, shelf, at_once()) is None
    (piece,) = (tmp_path / "taken").iterdir()
    assert set(json.loads(piece.read_bytes())) == set(table_of("TakenPiece"))
    piece.write_bytes(b"{")
    with pytest.raises(IntegrityError, match="damaged"):
        take_on(SETTINGS, store, shelf, NoDeadline())
    piece.write_bytes(b'{"version": 2}')
    with pytest.raises(IntegrityError, match="version"):
        take_on(SETTINGS, store, shelf, NoDeadline())
    assert pages.read_index(shelf) is None


def test_a_run_begins_by_as_many_calls_as_inventory_and_counting_take() -> None:
    sources = [source(f"{number % 7}/{number:03}") for number in range(100)]
    settings = settings_of(**INVENTORY, depth=1)
    whole, parted = (delivered(inventory_of(sources, NOW)) for _ in range(2))
    (once,) = _begun(settings, whole, NoDeadline)
    goes_on = [True] * 8 + [False] * 30
    answers = _begun(settings, parted, lambda: Chances(iter(goes_on)))
    assert answers[0] == Part(0, 0), "the inventory"
    assert Part(7, 1) in answers or any(one.partitions == 7 for one in answers[:-1])
    last, first = answers[-1], once
    assert isinstance(last, Begun)
    assert isinstance(first, Begun)
    assert last.in_full() == first.in_full()
    assert [item.objects for item in last.in_full().items] == [15, 15, 14, 14, 14, 14, 14]
    lists = [call for call in parted.calls if call.name == "list_objects"]
    assert not [call for call in lists if call.bucket == "source"]


def _begun(settings: Any, store: MemoryStore, time: Any) -> list[Any]:
    answers: list[Any] = []
    while not answers or isinstance(answers[-1], Part):
        answers.append(begin(settings, RUN, store, NOW, deadline=time()))
        assert len(answers) < 200
    return answers
