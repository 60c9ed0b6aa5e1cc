"""How Spark reads the outputs that it merges into a table."""

from __future__ import annotations

import pytest

from compactor.errors import InvalidInput
from compactor_spark.upsert.access import access


@pytest.mark.parametrize(
    ("asked", "master", "schemes", "way"),
    [
        ("auto", "local[2]", {"s3a"}, "staged"),
        ("auto", "local-cluster[2,1,1024]", set(), "staged"),
        ("auto", "yarn", {"s3", "s3a"}, "s3"),
        ("auto", "yarn", {"s3a"}, "s3a"),
        ("s3a", "local[2]", {"s3a"}, "s3a"),
        ("staged", "local[2]", set(), "staged"),
    ],
)
def test_a_way_is_chosen_by_what_executors_can_reach(
    asked: str, master: str, schemes: set[str], way: str
) -> None:
    assert access(asked, master, frozenset(schemes)) == way


@pytest.mark.parametrize(
    ("asked", "master", "message"),
    [
        ("auto", "yarn", "spark.master: 'yarn' is not accepted; expected a cluster on which"),
        ("staged", "yarn", "spark.compactor.access: 'staged' is not accepted; expected s3 or s3a"),
        ("s3", "local[2]", "spark.compactor.access: 's3' is not accepted; expected a scheme"),
        ("hdfs", "yarn", "spark.compactor.access: 'hdfs' is not accepted; expected auto, staged"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(asked: str, master: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        access(asked, master, frozenset())
    assert str(refused.value).startswith(message)
