"""What a store that contradicts itself may not do to the first run of a destination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from compactor.errors import AlreadyExists, TransientStoreError
from compactor.log.schemes import remember_scheme
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class Forgetful:
    """Says that each object is there already, and lists none."""

    def __init__(self) -> None:
        self.asked = 0

    def list_objects(self, *_: str, **__: str) -> Iterator[Any]:
        return iter(())

    def create(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        raise AlreadyExists("it is there")


def test_a_scheme_that_is_there_and_is_not_ends_the_run_instead_of_looping() -> None:
    store = Forgetful()
    settings = Settings.from_input(
        {"s3_source_uri": "s3://logs/in/", "s3_destination_uri": "s3://lake/out/"}
    )
    with pytest.raises(TransientStoreError, match="100 other schemes"):
        remember_scheme(settings, cast("ObjectStore", store))
    assert store.asked == 100
