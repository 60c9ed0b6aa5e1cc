"""The picture of the workflow in docs/deployment.md, drawn from the state machine's definition.

``python -m compactor_dev.diagram`` writes it; the tests compare it.
"""

from __future__ import annotations

import json
from pathlib import Path

from compactor_dev.asl_drawing.graph import read_graph
from compactor_dev.asl_drawing.places import place
from compactor_dev.asl_drawing.svg import draw

_STATE_MACHINE = Path(__file__).resolve().parents[2] / "statemachine"
DEFINITION = _STATE_MACHINE / "compaction.asl.json"
PICTURE = _STATE_MACHINE / "compaction.svg"


def drawn(definition: str) -> str:
    """The SVG document of a definition in the Amazon States Language.

    Raises:
        ValueError: the definition is no JSON.
    """
    machine = json.loads(definition)
    return draw(place(read_graph(machine)), str(machine.get("Comment", "a state machine")))


if __name__ == "__main__":
    PICTURE.write_text(drawn(DEFINITION.read_text(encoding="utf-8")), encoding="utf-8")
