"""How the modules of tests are handed out to the processes that run them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from tests.support.balance import TOGETHER, Balanced

_TESTS = Path(__file__).parents[1]
_CONFIG = SimpleNamespace(
    option=SimpleNamespace(loadscopereorder=True), getvalue=lambda _: ["popen", "popen"]
)


@dataclass(eq=False)
class Node:
    """A process of pytest-xdist, as its scheduler knows it."""

    asked: list[int] = field(default_factory=list)
    shutting_down: bool = False
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="gw"))

    def send_runtest_some(self, indices: list[int]) -> None:
        self.asked += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def modules_of_two_nodes(names: list[str]) -> list[list[str]]:
    """The modules that each of two processes gets, in its order; all tests take equally long."""
    tests = [f"tests/{name}.py::test_{number}" for name in names for number in range(4)]
    scheduler = Balanced(_CONFIG)
    nodes = [Node(), Node()]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    for number in range(len(tests)):
        for node in nodes:
            if number < len(node.asked):
                scheduler.mark_test_complete(node, node.asked[number])
    assert sorted(nodes[0].asked + nodes[1].asked) == [*range(len(tests))]
    given = [[tests[index].partition(".py")[0] for index in node.asked] for node in nodes]
    return [[*dict.fromkeys(name.removeprefix("tests/") for name in one)] for one in given]


def test_every_module_that_is_named_exists_and_is_named_once() -> None:
    named = Counter(name for names in TOGETHER for name in names)
    assert [name for name in named if not (_TESTS / f"{name}.py").is_file()] == []
    assert set(named.values()) == {1}


def test_modules_that_share_something_run_in_one_process_and_the_longest_come_first() -> None:
    shared, others = TOGETHER[0], TOGETHER[1]
    small = ["unit/test_a", "unit/test_b"]
    first, second = modules_of_two_nodes([*small, others[0], *shared, *others[1:]])
    assert first[: len(shared)] == [*shared]
    assert second[: len(others)] == [*others]
    assert sorted(first[len(shared) :] + second[len(others) :]) == small
