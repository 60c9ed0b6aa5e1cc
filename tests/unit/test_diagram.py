"""Each committed picture is its definition's, and shows all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from compactor_dev.asl_drawing.graph import Graph, condition, read_graph
from compactor_dev.asl_drawing.layers import make_layers
from compactor_dev.asl_drawing.places import Box, Picture, place, text_width
from compactor_dev.diagram import PICTURES, drawn


@pytest.fixture(scope="module", params=PICTURES, ids=lambda path: path.name)
def definition(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return path.read_text(encoding="utf-8")


def graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        for one in node.inside:
            yield from graphs(one)


def pictures(picture: Picture) -> Iterator[Picture]:
    yield picture
    for box in picture.boxes:
        for one in box.inside:
            yield from pictures(one)


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": next(iter(states)), "States": states}


def test_the_committed_pictures_are_drawn_from_the_definitions():
    for definition, picture in PICTURES.items():
        assert picture.read_text(encoding="utf-8") == drawn(definition.read_text("utf-8")), (
            "run python -m compactor_dev.diagram"
        )


def test_another_definition_gives_another_picture(definition):
    changed = re.sub(r'"(NothingToDo|PlanTable)"', '"NothingAtAll"', definition)
    assert changed != definition
    assert drawn(changed) != drawn(definition)


def test_every_state_is_in_the_picture_once(definition):
    document = ElementTree.fromstring(drawn(definition))  # noqa: S314 - our own document
    texts = [one.text for one in document.iter("{http://www.w3.org/2000/svg}text")]
    names = re.findall(r'^\s+"(\w+)": \{\s*"Type":', definition, re.MULTILINE)
    assert len(names) > 25
    assert [name for name in names if texts.count(name) != 1] == []


def test_every_transition_is_in_the_picture(definition):
    def transitions(state: dict[str, Any]) -> set[str]:
        nexts = [state.get("Next"), state.get("Default")]
        nexts += [one["Next"] for key in ("Choices", "Catch") for one in state.get(key, ())]
        return {target for target in nexts if target}

    def told(states: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for name, state in states.items():
            yield from ((name, target) for target in transitions(state))
            inner = [*state.get("Branches", ()), state.get("ItemProcessor", {"States": {}})]
            for one in inner:
                yield from told(one["States"])

    expected = set(told(json.loads(definition)["States"]))
    found = {
        (edge.source, edge.target)
        for graph in graphs(read_graph(json.loads(definition)))
        for edge in graph.edges
    }
    assert found == expected


def test_the_picture_can_be_read_at_the_width_of_a_readme(definition):
    # 830 pixels wide as forges show it: names of 13 pixels become ten.
    assert place(read_graph(json.loads(definition))).width < 1_100


def test_no_box_overlaps_another_or_leaves_its_frame(definition):
    def overlap(one: Box, two: Box) -> bool:
        beside = one.x + one.width <= two.x or two.x + two.width <= one.x
        above = one.y + one.height <= two.y or two.y + two.height <= one.y
        return not (beside or above)

    for picture in pictures(place(read_graph(json.loads(definition)))):
        for one, two in combinations(picture.boxes, 2):
            assert not overlap(one, two), (one.node.name, two.node.name)
        for box in picture.boxes:
            for inner in (child for one in box.inside for child in one.boxes):
                assert box.x <= inner.x
                assert inner.x + inner.width <= box.x + box.width
                assert box.y <= inner.y
                assert inner.y + inner.height <= box.y + box.height
            assert text_width(box.node.name, 13) <= box.width


def test_a_loop_goes_back_up_and_all_else_goes_down():
    looped = machine(
        Work={"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "Done"},
        Done={
            "Type": "Choice",
            "Choices": [{"Variable": "$.status", "StringEquals": "more", "Next": "Work"}],
            "Default": "End",
        },
        End={"Type": "Succeed"},
    )
    layers = make_layers(read_graph(looped))
    assert [[slot.name for slot in row] for row in layers.rows] == [["Work"], ["Done"], ["End"]]
    assert [(edge.source, edge.target, edge.label) for edge in layers.back] == [
        ("Done", "Work", "more")
    ]
    back = [wire for wire in place(read_graph(looped)).wires if wire.back]
    assert len(back) == 1
    assert back[0].points[0][1] > back[0].points[-1][1]


def test_a_long_way_bends_past_the_rows_between():
    skipping = machine(
        A={
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "C"}],
            "Next": "B",
        },
        B={"Type": "Pass", "Next": "C"},
        C={"Type": "Succeed"},
    )
    picture = place(read_graph(skipping))
    boxes = {box.node.name: box for box in picture.boxes}
    pieces = [wire for wire in picture.wires if wire.caught]
    assert [wire.arrow for wire in pieces] == [False, True]
    (x, _) = pieces[0].points[-1]
    assert not boxes["B"].x <= x <= boxes["B"].x + boxes["B"].width


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"Variable": "$.work", "BooleanEquals": True}, "work"),
        ({"Variable": "$.work", "BooleanEquals": False}, "no work"),
        ({"Variable": "$.item_count", "NumericGreaterThan": 0}, "item_count > 0"),
        ({"Variable": "$.status", "StringEquals": "more"}, "more"),
        ({"Variable": "$.settings.clean_up", "StringEquals": "delete"}, "clean_up = delete"),
        ({"Variable": "$.cluster_id", "IsString": True}, "cluster_id given"),
        ({"Not": {"Variable": "$.work", "BooleanEquals": True}}, "not work"),
        (
            {
                "And": [
                    {"Variable": "$.status", "StringEquals": "done"},
                    {"Variable": "$.n", "NumericEquals": 1},
                ]
            },
            "done and\nn = 1",
        ),
    ],
)
def test_a_condition_is_told_in_a_few_words(choice, words):
    assert condition({**choice, "Next": "X"}) == words
