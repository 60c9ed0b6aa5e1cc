"""The pictures of the workflows in docs/, drawn from the state machines' definitions.

``python -m compactor_dev.diagram`` writes them; the tests compare them.
"""

from __future__ import annotations

import json
from pathlib import Path

from compactor_dev.asl_drawing.graph import read_graph
from compactor_dev.asl_drawing.places import place
from compactor_dev.asl_drawing.svg import draw

_STATE_MACHINE = Path(__file__).resolve().parents[2] / "statemachine"
#: Each definition, and its picture.
PICTURES = {
    _STATE_MACHINE / f"{name}.asl.json": _STATE_MACHINE / f"{name}.svg"
    for name in ("compaction", "tables")
}


def drawn(definition: str) -> str:
    """The SVG document of a definition in the Amazon States Language.

    Raises:
        ValueError: the definition is no JSON.
    """
    machine = json.loads(definition)
    return draw(place(read_graph(machine)), str(machine.get("Comment", "a state machine")))


if __name__ == "__main__":
    for definition, picture in PICTURES.items():
        picture.write_text(drawn(definition.read_text(encoding="utf-8")), encoding="utf-8")
