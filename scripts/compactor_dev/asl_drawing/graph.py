"""A definition in the Amazon States Language as nodes and edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARISONS = {
    "NumericGreaterThan": ">",
    "NumericGreaterThanEquals": "≥",
    "NumericLessThan": "<",
    "NumericLessThanEquals": "≤",
    "NumericEquals": "=",
    "StringEquals": "=",
}
# Resource arn:aws:states:::<this>:… -> kind of node.
_SERVICES = {"lambda": "lambda", "elasticmapreduce": "spark", "emr-serverless": "spark"}
# A value of these fields says enough without the field's name.
_PLAIN = frozenset({"status"})


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition.

    Attributes:
        label: when it is taken, in one or more lines; empty for always.
        caught: taken on an error.
    """

    source: str
    target: str
    label: str = ""
    caught: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A state.

    Attributes:
        kind: ``lambda``, ``spark``, ``task``, ``choice``, ``pass``, ``wait``, ``succeed``,
            ``fail``, ``map`` or ``parallel``.
        note: a few words below its name.
        inside: the branches of a Parallel, or the one processor of a Map.
    """

    name: str
    kind: str
    note: str = ""
    inside: tuple[Graph, ...] = ()


@dataclass(frozen=True, slots=True)
class Graph:
    """States and transitions of one machine, branch or item processor; the first node starts."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def read_graph(machine: Mapping[str, Any]) -> Graph:
    """Read a definition, or a branch of one.

    Args:
        machine: ``StartAt`` and ``States``, as ``json.loads`` returns them.
    """
    states: Mapping[str, Mapping[str, Any]] = machine["States"]
    names = [machine["StartAt"], *(name for name in states if name != machine["StartAt"])]
    nodes = tuple(_node(name, states[name]) for name in names)
    return Graph(nodes, tuple(edge for name in names for edge in _edges(name, states[name])))


def _node(name: str, state: Mapping[str, Any]) -> Node:
    kind = str(state["Type"]).lower()
    if kind == "parallel":
        inside = tuple(read_graph(branch) for branch in state["Branches"])
        return Node(name, kind, "all branches at once", inside)
    if kind == "map":
        processor = state["ItemProcessor"]
        mode = processor.get("ProcessorConfig", {}).get("Mode", "INLINE").capitalize()
        return Node(name, kind, f"{mode} Map: once for each item", (read_graph(processor),))
    if kind == "task":
        return Node(name, *_service(str(state["Resource"])))
    return Node(name, kind)


def _service(resource: str) -> tuple[str, str]:
    service, _, action = resource.rpartition(":::")[2].partition(":")
    kind = _SERVICES.get(service, "task")
    return kind, "Lambda" if kind == "lambda" else action.partition(".")[0]


def _edges(name: str, state: Mapping[str, Any]) -> Iterator[Edge]:
    if "Next" in state:
        yield Edge(name, state["Next"])
    by_target: dict[str, list[str]] = {}
    for choice in state.get("Choices", ()):
        by_target.setdefault(choice["Next"], []).append(condition(choice))
    for target, conditions in by_target.items():
        yield Edge(name, target, " or\n".join(conditions))
    if "Default" in state:
        yield Edge(name, state["Default"], "otherwise")
    for target in dict.fromkeys(one["Next"] for one in state.get("Catch", ())):
        if target != state.get("Next"):
            yield Edge(name, target, caught=True)


def condition(choice: Mapping[str, Any]) -> str:
    """A rule of a Choice in a few words."""
    for word in ("And", "Or"):
        if word in choice:
            return f" {word.lower()}\n".join(condition(one) for one in choice[word])
    if "Not" in choice:
        return f"not {condition(choice['Not'])}"
    name = str(choice["Variable"]).rpartition(".")[2]
    (operator,) = (key for key in choice if key not in {"Variable", "Next", "Comment"})
    value = choice[operator]
    if operator.startswith("Is"):
        return f"{name} given" if value else f"no {name}"
    if operator == "BooleanEquals":
        return name if value else f"no {name}"
    if operator == "StringEquals" and name in _PLAIN:
        return str(value)
    return f"{name} {_COMPARISONS.get(operator, operator)} {value}"
