"""Where everything stands, in pixels; x to the right, y down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median

from compactor_dev.asl_drawing.graph import Edge, Graph, Node
from compactor_dev.asl_drawing.layers import Layers, Link, Slot, make_layers

NAME_SIZE, NOTE_SIZE = 13.0, 11.0
HEAD_HEIGHT = 42.0
_PAD, _GAP_X, _GAP_Y, _BEND = 10.0, 12.0, 48.0, 8.0
_NODE_HEIGHT, _NOTED_HEIGHT = 30.0, 42.0
_SWEEPS = 24
# Advance widths of Helvetica in thousandths of the size, for what differs most from 556.
_NARROW = dict.fromkeys("iljtfrI.,:;'!| ()-", 300) | dict.fromkeys("mwMW%@", 830)
_CAPITAL_WIDTH, _WIDTH, _BOLD = 690, 556, 1.08


@dataclass(frozen=True, slots=True)
class Box:
    """A node in its place; ``inside`` are its branches, placed in the same coordinates."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    inside: tuple[Picture, ...] = ()

    @property
    def middle(self) -> float:
        """Of its width, as an x."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Wire:
    """A link or an edge that goes back, as points from row to row.

    Attributes:
        points: a straight line down to every second one, a curve between the others.
        label_at: middle of the base line of the label's last line.
        arrow: it ends at its target.
    """

    points: tuple[tuple[float, float], ...]
    label: str
    label_at: tuple[float, float]
    caught: bool
    arrow: bool = True
    back: bool = False


@dataclass(slots=True)
class Picture:
    """A placed graph."""

    width: float
    height: float
    boxes: list[Box] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)


def text_width(text: str, size: float) -> float:
    """About how wide a text is, in pixels, in Helvetica of this size."""
    total = 0
    for character in text:
        usual = _CAPITAL_WIDTH if character.isupper() else _WIDTH
        total += _NARROW.get(character, usual)
    return total * size / 1000


def label_width(label: str) -> float:
    """How much room the longest line of a label takes; 0 for none."""
    if not label:
        return 0.0
    return max(text_width(line, NOTE_SIZE) for line in label.split("\n")) + 6


def place(graph: Graph, left: float = 0.0, top: float = 0.0) -> Picture:
    """Place a graph with everything inside its nodes.

    Args:
        graph: what to draw.
        left: x of its left edge.
        top: y of its upper edge.
    """
    return _Placing(graph, left, top).picture()


def size_of(node: Node) -> tuple[float, float]:
    """Width and height of a node."""
    name = text_width(node.name, NAME_SIZE) * (_BOLD if node.note else 1)
    texts = max(name, text_width(node.note, NOTE_SIZE)) + 20
    if not node.inside:
        return texts, _NOTED_HEIGHT if node.note else _NODE_HEIGHT
    inner = [place(graph) for graph in node.inside]
    width = sum(one.width for one in inner) + _PAD * (len(inner) + 1)
    return max(texts, width), HEAD_HEIGHT + max(one.height for one in inner) + _PAD


class _Placing:
    def __init__(self, graph: Graph, left: float, top: float) -> None:
        self._graph, self._left, self._top = graph, left, top
        self._nodes = {node.name: node for node in graph.nodes}
        self._sizes = {node.name: size_of(node) for node in graph.nodes}
        self._layers: Layers = make_layers(graph)
        self._labels: dict[Slot, float] = {}
        for link in self._layers.links:
            width = label_width(link.label)
            self._labels[link.below] = max(self._labels.get(link.below, 0.0), width)
        self._middle = _middles(self._layers, self._width)
        self._tops: list[float] = []
        self._heights: list[float] = []

    def picture(self) -> Picture:
        rows = self._layers.rows
        slots = [slot for row in rows for slot in row]
        leftmost = min(self._middle[slot] - self._width(slot) / 2 for slot in slots)
        for slot in slots:
            self._middle[slot] += self._left - leftmost
        right = max(self._middle[slot] + self._width(slot) / 2 for slot in slots)
        y = self._top
        for row in rows:
            self._tops.append(y)
            self._heights.append(max((self._height(slot) for slot in row), default=0.0))
            y += self._heights[-1] + _GAP_Y
        boxes = {slot.name: self._box(slot) for slot in slots if not slot.key}
        wires = [self._wire(link) for link in self._layers.links]
        wires += _back_wires(self._layers.back, boxes, right)
        right = max([right, *(_right_of(wire) for wire in wires if wire.back)])
        return Picture(right - self._left, y - _GAP_Y - self._top, list(boxes.values()), wires)

    def _width(self, slot: Slot) -> float:
        own = _BEND if slot.key else self._sizes[slot.name][0]
        return max(own, self._labels.get(slot, 0.0))

    def _height(self, slot: Slot) -> float:
        return 0.0 if slot.key else self._sizes[slot.name][1]

    def _box(self, slot: Slot) -> Box:
        node = self._nodes[slot.name]
        width, height = self._sizes[slot.name]
        x, y = self._middle[slot] - width / 2, self._tops[slot.row]
        inside, left = [], x + _PAD
        for graph in node.inside:
            inside.append(place(graph, left, y + HEAD_HEIGHT))
            left += inside[-1].width + _PAD
        return Box(node, x, y, width, height, tuple(inside))

    def _wire(self, link: Link) -> Wire:
        """Down through the rest of the upper row, across, and through the row of a bend."""
        above, below = link.above, link.below
        x1, x2 = self._middle[above], self._middle[below]
        bottom = self._tops[above.row] + self._heights[above.row]
        start = bottom if above.key else self._tops[above.row] + self._height(above)
        top = self._tops[below.row]
        end = top if link.last else top + self._heights[below.row]
        points = ((x1, start), (x1, bottom), (x2, top), (x2, end))
        return Wire(points, link.label, (x2, top - 12), link.caught, arrow=link.last)


def _back_wires(edges: Sequence[Edge], boxes: dict[str, Box], right: float) -> list[Wire]:
    """Side by side, but one below the other where they go past other rows."""
    wires: list[Wire] = []
    for edge in edges:
        top, bottom = sorted(boxes[name].y for name in (edge.source, edge.target))
        beside = [
            wire
            for wire in wires
            if min(y for _, y in wire.points) <= bottom + _GAP_Y
            and max(y for _, y in wire.points) >= top - _GAP_Y
        ]
        wires.append(_back_wire(edge, boxes, max([right, *map(_right_of, beside)])))
    return wires


def _right_of(wire: Wire) -> float:
    return wire.label_at[0] + label_width(wire.label) / 2


def _back_wire(edge: Edge, boxes: dict[str, Box], right: float) -> Wire:
    """Up along the right side."""
    source, target = boxes[edge.source], boxes[edge.target]
    x = max(right, source.x + source.width, target.x + target.width) + _GAP_X
    y1, y2 = source.y + source.height / 2, target.y + target.height / 2
    points = ((source.x + source.width, y1), (x, y1), (x, y2), (target.x + target.width, y2))
    label_x = x + label_width(edge.label) / 2
    return Wire(points, edge.label, (label_x, (y1 + y2) / 2 + 4), edge.caught, back=True)


def _middles(layers: Layers, width: Callable[[Slot], float]) -> dict[Slot, float]:
    """Where the middle of every slot is: near its neighbours, in the order of its row."""
    middle: dict[Slot, float] = {}
    for row in layers.rows:
        x = 0.0
        for slot in row:
            middle[slot] = x + width(slot) / 2
            x += width(slot) + _GAP_X
    for sweep in range(_SWEEPS):
        for row in layers.rows if sweep % 2 else reversed(layers.rows):
            wanted = [_wanted(slot, layers, middle) for slot in row]
            for slot, x in zip(row, _spread(row, wanted, width), strict=True):
                middle[slot] = x
    return middle


def _wanted(slot: Slot, layers: Layers, middle: dict[Slot, float]) -> float:
    near = [middle[link.above] for link in layers.links if link.below == slot]
    near += [middle[link.below] for link in layers.links if link.above == slot]
    # The median, not the mean: one neighbour far away must not drag a whole way along.
    return median(near) if near else middle[slot]


def _spread(
    row: Sequence[Slot], wanted: Sequence[float], width: Callable[[Slot], float]
) -> list[float]:
    """As near as possible to what is wanted, without overlaps (least squares).

    Less the room that the slots before take, the places must not fall: that is isotonic
    regression, solved by pooling neighbours that violate it.
    """
    room = [0.0]
    for one, two in pairwise(row):
        room.append(room[-1] + (width(one) + width(two)) / 2 + _GAP_X)
    pools: list[list[float]] = []
    for want, before in zip(wanted, room, strict=True):
        pools.append([want - before])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    flat = [fmean(pool) for pool in pools for _ in pool]
    return [place + before for place, before in zip(flat, room, strict=True)]
