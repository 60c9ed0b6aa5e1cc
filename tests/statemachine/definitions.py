"""The definitions of the state machines, and what is known of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor_local import definition
from compactor_local.definition import VALUES, each_state, function_substitution
from tests.statemachine import asl_checks
from tests.support import tables_model

Machine = dict[str, Any]


@dataclass(frozen=True)
class Definition:
    """A definition.

    Attributes:
        path: where it stands.
        maps: where its distributed maps stand, as the validator tells it.
        checks: what it must pass.
        substitutions: its functions.
        values: what else is filled in.
        handlers: that run here for its functions.
    """

    path: Path
    maps: tuple[str, ...]
    checks: Iterable[Callable[[Mapping[str, Any]], Iterator[str]]]
    substitutions: Mapping[str, str]
    values: Mapping[str, str]
    handlers: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def machine(self) -> Machine:
        """As it is read, to be broken at will."""
        found: Machine = json.loads(self.text.replace("${AwsPartition}", VALUES["AwsPartition"]))
        return found

    @property
    def false_alarms(self) -> set[str]:
        """What statelint 3.1.0 says because it does not know three things that the language has.

        Whole messages, so that the same fault anywhere else is still found.
        """
        return {
            alarm
            for name in self.maps
            for alarm in (
                f'Field "Label" not allowed in {name}',
                f'Field "InputType" not allowed in {name}.ItemReader.ReaderConfig',
                f"{name}.ToleratedFailurePercentage is 100.0 but should be an Integer",
            )
        }


COMPACTION = Definition(
    path=definition.DEFINITION,
    maps=(
        "State Machine.States.CompactPartitions",
        "State Machine.States.CleanUpPartitions",
    ),
    checks=asl_checks.CHECKS,
    substitutions={function_substitution(name): name for name in definition.HANDLERS},
    values=definition.VALUES,
    handlers=definition.HANDLERS,
)
TABLES = Definition(
    path=tables_model.TABLES_DEFINITION,
    maps=("State Machine.States.MaintainTables",),
    checks=asl_checks.TABLES_CHECKS,
    substitutions={function_substitution(name): name for name in tables_model.TABLES_HANDLERS},
    values=tables_model.TABLES_VALUES,
    handlers=tables_model.TABLES_HANDLERS,
)


def state(machine: Mapping[str, Any], name: str) -> Any:
    return dict(each_state(machine))[name]
