"""Rows of a drawing: every edge goes down from row to row, and few of them cross.

The usual way (Sugiyama): edges against the flow are set apart, a node's row is the longest way to
it, edges over several rows get a bend in each of them, and rows are ordered by their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compactor_dev.asl_drawing.graph import Edge, Graph

_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a row: of a node, or of a bend of edges that pass by.

    Attributes:
        name: of the node; of the target, for a bend.
        row: counted from 0.
        key: tells bends of different edges apart; empty for a node.
    """

    name: str
    row: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A piece of one edge, or of several that share it, from one row to the next.

    Attributes:
        last: it ends at the edge's target.
    """

    above: Slot
    below: Slot
    label: str
    caught: bool

    @property
    def last(self) -> bool:
        """True when it ends at the target of its edge."""
        return not self.below.key


@dataclass(slots=True)
class Layers:
    """Rows of slots, the links between them, and the edges that go back."""

    rows: list[list[Slot]]
    links: list[Link] = field(default_factory=list)
    back: list[Edge] = field(default_factory=list)


def make_layers(graph: Graph) -> Layers:
    """Give every node its place in a row."""
    back = _back_edges(graph)
    forward = [edge for edge in graph.edges if edge not in back and edge.source != edge.target]
    row_of = _rows(graph, forward)
    slots = {node.name: Slot(node.name, row_of[node.name]) for node in graph.nodes}
    layers = Layers([[] for _ in range(max(row_of.values()) + 1)], back=back)
    links: dict[Link, None] = {}
    for edge in forward:
        links.update(dict.fromkeys(_links(edge, slots)))
    layers.links = list(links)
    seen = dict.fromkeys(slots.values())
    seen.update(dict.fromkeys(end for link in links for end in (link.above, link.below)))
    for slot in seen:
        layers.rows[slot.row].append(slot)
    _order(layers)
    return layers


def _back_edges(graph: Graph) -> list[Edge]:
    """Edges to a state that leads to their own source, found from the start on."""
    out: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        out.setdefault(edge.source, []).append(edge)
    back: list[Edge] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in done:
            return
        for edge in out.get(name, ()):
            if edge.target in (*path, name):
                back.append(edge)
            else:
                visit(edge.target, (*path, name))
        done.add(name)

    for node in graph.nodes:
        visit(node.name, ())
    return back


def _rows(graph: Graph, forward: Sequence[Edge]) -> dict[str, int]:
    """The longest way to each node."""
    row_of = {node.name: 0 for node in graph.nodes}
    for _ in graph.nodes:
        for edge in forward:
            row_of[edge.target] = max(row_of[edge.target], row_of[edge.source] + 1)
    return row_of


def _links(edge: Edge, slots: Mapping[str, Slot]) -> Iterable[Link]:
    """The pieces of an edge. Edges of one kind to one target share their bends."""
    above, target = slots[edge.source], slots[edge.target]
    # A labelled edge keeps its own way until its label has been read.
    key = f"{'!' if edge.caught else '>'}{edge.source if edge.label else ''}"
    for row in range(above.row + 1, target.row):
        bend = Slot(edge.target, row, key)
        yield Link(above, bend, "" if above.key else edge.label, edge.caught)
        above = bend
    yield Link(above, target, "" if above.key else edge.label, edge.caught)


def _order(layers: Layers) -> None:
    """Order each row by where its neighbours are; the best of some sweeps stays."""
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        numbers = range(1, len(layers.rows)) if down else range(len(layers.rows) - 2, -1, -1)
        for number in numbers:
            _order_row(layers, number, from_above=down)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows = best


def _order_row(layers: Layers, number: int, *, from_above: bool) -> None:
    other = layers.rows[number - 1 if from_above else number + 1]
    at = {slot: position for position, slot in enumerate(other)}

    def middle(slot: Slot) -> float:
        if from_above:
            ends = [at[link.above] for link in layers.links if link.below == slot]
        else:
            ends = [at[link.below] for link in layers.links if link.above == slot]
        # Who has no neighbours keeps its place.
        return sum(ends) / len(ends) if ends else layers.rows[number].index(slot)

    layers.rows[number] = sorted(layers.rows[number], key=middle)


def _crossings(layers: Layers) -> int:
    at = {slot: position for row in layers.rows for position, slot in enumerate(row)}
    total = 0
    for number, one in enumerate(layers.links):
        for other in layers.links[number + 1 :]:
            if one.above.row == other.above.row:
                tops = at[one.above] - at[other.above]
                bottoms = at[one.below] - at[other.below]
                total += tops * bottoms < 0
    return total
