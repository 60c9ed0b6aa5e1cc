"""A document of the state is found again as it was left, and a later version's is refused."""

from __future__ import annotations

import json

import msgspec
import pytest

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document, leave_first, read_document
from compactor.errors import IntegrityError, ObjectMissing
from tests.support.memory_store import MemoryStore

PLACE = ("state", "compactor/kept.json")


class Kept(msgspec.Struct):
    name: str


class Told(msgspec.Struct):
    version: int = 1
    name: str = ""


_decode = decoder(Kept)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("state")
    return store


def test_a_document_is_found_as_it_was_left(store: MemoryStore) -> None:
    leave_document(store, PLACE, Kept("first"), 2)
    leave_document(store, PLACE, Kept("second"), 2)
    assert json.loads(store.get(*PLACE)) == {"version": 2, "name": "second"}
    assert find_document(store, PLACE, _decode, 2) == Kept("second")
    assert read_document(store, PLACE, _decode, 2) == Kept("second")


def test_of_documents_left_once_the_first_stands(store: MemoryStore) -> None:
    assert leave_first(store, PLACE, Kept("first"), 1)
    assert not leave_first(store, PLACE, Kept("second"), 1)
    assert find_document(store, PLACE, _decode, 1) == Kept("first")


def test_a_document_that_has_its_version_itself_has_it_once(store: MemoryStore) -> None:
    leave_first(store, PLACE, Told(name="it"), 1)
    assert store.get(*PLACE) == b'{"version":1,"name":"it"}'


def test_there_may_be_no_document(store: MemoryStore) -> None:
    assert find_document(store, PLACE, _decode, 1) is None
    with pytest.raises(ObjectMissing):
        read_document(store, PLACE, _decode, 1)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"version": 2, "name": "it"}', "has version 2, and this program reads version 1"),
        (b'{"version": 1}', "is damaged"),
        (b"", "is damaged"),
    ],
)
def test_what_cannot_be_read_is_named(store: MemoryStore, body: bytes, told: str) -> None:
    store.put(*PLACE, body)
    for read in (find_document, read_document):
        with pytest.raises(IntegrityError, match=f"s3://state/compactor/kept.json {told}"):
            read(store, PLACE, _decode, 1)
