"""Rules about tables: which are left alone, and how and when the others are maintained.

The first rule of a file that matches applies. A pattern names tables (``glue:bronze.*``,
``delta:s3://lake/gold/*``); ``*`` matches anything, and ``bronze.*`` matches tables of any catalog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

import msgspec

from compactor.errors import InvalidInput
from compactor.settings.specs import (
    Declared,
    FieldSpec,
    Reader,
    Required,
    flag,
    globs,
    one_of,
    whole,
)
from compactor.settings.units import days, seconds, size
from compactor.sizes import MIB, TIB
from compactor_tables.schedules import (
    EVERY_ACCEPTED,
    HOURS_ACCEPTED,
    Every,
    QuietHours,
    parse_every,
    parse_hours,
)

ENGINES = ("auto", "worker", "spark", "athena")
_WHAT, _HOW, _KEEP, _WHEN = "What", "How", "What is kept", "When"
_DUE = "When it is due, with only_when_due"
_DAY = 86_400
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,254}")
_TABLE = re.compile(r"(glue|rest|sql|delta):")
_WORKGROUP = re.compile(r"[A-Za-z0-9._-]{1,128}")


def _read_workgroup(value: object) -> str:
    if not isinstance(value, str) or not _WORKGROUP.fullmatch(value):
        raise ValueError
    return value


def _columns(*orders: str) -> Reader:
    """Return a reader of distinct columns, each followed by one of these words if any are given."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise ValueError
        found = [one.split() if isinstance(one, str) else [] for one in value]
        if not all(0 < len(one) <= 2 and _COLUMN.fullmatch(one[0]) for one in found):
            raise ValueError
        if any(one[1:] and one[1].lower() not in orders for one in found):
            raise ValueError
        if len({one[0] for one in found}) < len(found):
            raise ValueError
        return tuple(" ".join(one) for one in found)

    shown = '["day", "id desc"]' if orders else '["customer", "day"]'
    return Reader(f"a list of columns, each once, such as {shown}", read)


class Rule(msgspec.Struct, frozen=True):
    """One rule, checked."""

    match: Annotated[
        tuple[str, ...],
        Declared(
            _WHAT,
            Required.REQUIRED,
            globs(),
            "Patterns of what the rule is for; the first rule of the file that matches counts.",
        ),
    ]
    leave: Annotated[
        bool, Declared(_WHAT, False, flag(), "Never touch it; no other field says anything then.")
    ]
    engine: Annotated[
        str,
        Declared(
            _HOW,
            "auto",
            one_of(*ENGINES),
            "Who rewrites a table; auto takes the worker if it can, else the cheaper of the two.",
        ),
    ]
    target_bytes: Annotated[
        int | None,
        Declared(
            _HOW,
            None,
            size(MIB, 10 * 1024 * MIB),
            "Size of a data file; by default what the table's properties say.",
        ),
    ]
    num_files: Annotated[
        int | None,
        Declared(
            _HOW,
            None,
            whole(1, 100_000),
            "Delta: rewrite each partition as so many files, instead of OPTIMIZE.",
        ),
    ]
    min_files: Annotated[
        int,
        Declared(_HOW, 5, whole(2, 100_000), "A partition with fewer files to rewrite is left."),
    ]
    sort: Annotated[
        tuple[str, ...],
        Declared(_HOW, (), _columns("asc", "desc"), "Iceberg: columns to sort rewritten rows by."),
    ]
    zorder: Annotated[
        tuple[str, ...],
        Declared(_HOW, (), _columns(), "Columns whose values shall lie close together."),
    ]
    most_bytes: Annotated[
        int, Declared(_HOW, TIB, size(1, 1024 * TIB), "What one run may rewrite of a table.")
    ]
    verify_bytes: Annotated[
        int,
        Declared(
            _HOW,
            100 * 1024 * MIB,
            size(0, 1024 * TIB),
            "Up to so many rewritten bytes the rows before and after are counted and hashed.",
        ),
    ]
    keep_days: Annotated[
        float,
        Declared(
            _KEEP, 7.0, days(0, 3_650), "How long snapshots, and files that versions name, stay."
        ),
    ]
    keep_versions: Annotated[
        int, Declared(_KEEP, 1, whole(1, 100_000), "Snapshots that stay whatever their age.")
    ]
    orphan_days: Annotated[
        float,
        Declared(_KEEP, 7.0, days(0, 3_650), "How old a file that nothing names must be to go."),
    ]
    below_floor: Annotated[
        bool,
        Declared(
            _KEEP,
            False,
            flag(),
            "Say for the second time that keep_days may be below 7, or orphan_days below 3: any"
            " process that still reads or writes loses data.",
        ),
    ]
    closed_after_seconds: Annotated[
        int,
        Declared(
            _WHEN,
            3_600,
            seconds(0, 366 * _DAY),
            "A partition that a commit touched since is left: rewriting it makes writers fail.",
        ),
    ]
    quiet_hours: Annotated[
        tuple[QuietHours, ...],
        Declared(
            _WHEN,
            (),
            Reader(HOURS_ACCEPTED, parse_hours),
            "When nothing may run.",
        ),
    ]
    athena_workgroup: Annotated[
        str | None,
        Declared(
            _DUE,
            None,
            Reader("the name of a workgroup of Athena", _read_workgroup),
            "Whose queries show how long scans of the table take.",
        ),
    ]
    slower_than_seconds: Annotated[
        int | None,
        Declared(
            _DUE,
            None,
            seconds(1, 366 * _DAY),
            "It is due when the median of the last seven scans is longer.",
        ),
    ]
    files_over: Annotated[
        int | None,
        Declared(_DUE, None, whole(1, 1_000_000_000), "It is due with more data files than that."),
    ]
    every: Annotated[
        Every | None,
        Declared(_DUE, None, Reader(EVERY_ACCEPTED, parse_every), "It is due by the date."),
    ]


def _declared() -> Mapping[str, FieldSpec]:
    hints = get_type_hints(Rule, include_extras=True)
    return {name: hint.__metadata__[0].named(name) for name, hint in hints.items()}


def _usual() -> dict[str, Any]:
    return {name: spec.default for name, spec in RULE_FIELDS.items()}


#: Each field of a rule, in documented order.
RULE_FIELDS: Mapping[str, FieldSpec] = MappingProxyType(_declared())
#: The rule that applies if no other matches.
USUAL = Rule(**(_usual() | {"match": ("*",)}))
# Below these, running readers and writers lose data: a job takes up to a day, a reader a week.
_FLOORS = {"keep_days": 7.0, "orphan_days": 3.0}


class Matched(msgspec.Struct, frozen=True):
    """The rule for one table.

    Attributes:
        number: number of the rule in its file, from 1; 0 if none matched.
        pattern: the pattern that matched.
    """

    rule: Rule
    number: int = 0
    pattern: str = ""

    @property
    def text(self) -> str:
        """The rule in words, for display."""
        return f"rule {self.number} ({self.pattern})" if self.number else "no rule"

    def is_quiet(self, now: float) -> bool:
        """Return whether nothing may run now; ``now`` is in UNIX seconds."""
        return any(one.holds(now) for one in self.rule.quiet_hours)


class Policies(msgspec.Struct, frozen=True):
    """The rules of a file, in order."""

    rules: tuple[Rule, ...] = ()

    def of(self, name: str) -> Matched:
        """Return the rule for a table's address."""
        for position, rule in enumerate(self.rules, start=1):
            for pattern in rule.match:
                if matches(pattern, name):
                    return Matched(rule, position, pattern)
        return Matched(USUAL)


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name. ``*`` matches anything, all else itself."""
    if not _TABLE.match(pattern):
        # The pattern is a table's name, for any catalog. A path is not such a name.
        name = name.partition(":")[2].rpartition("#")[2]
        if not name or "/" in name:
            return pattern == "*"
    wanted = ".*".join(map(re.escape, pattern.split("*")))
    return re.fullmatch(wanted, name, re.DOTALL) is not None


def read_policies(document: object) -> Policies:
    """Check and read the rules of a file.

    Args:
        document: a list of objects, decoded.

    Raises:
        InvalidInput: names the rule by its number, the field, the value and what is accepted.
    """
    if not isinstance(document, Sequence) or isinstance(document, str | bytes):
        raise InvalidInput(
            "policies", document, 'a list of rules such as [{"match": ["bronze.*"]}]'
        )
    return Policies(tuple(_read_rule(number, one) for number, one in enumerate(document, start=1)))


def _read_rule(position: int, given: object) -> Rule:
    where = f"policies[{position}]"
    if not isinstance(given, Mapping):
        raise InvalidInput(where, given, "an object with match, and what else the rule says")
    unknown = [name for name in given if name not in RULE_FIELDS]
    if unknown:
        raise InvalidInput(f"{where}.{unknown[0]}", given[unknown[0]], ", ".join(RULE_FIELDS))
    values: dict[str, Any] = {}
    for name, spec in RULE_FIELDS.items():
        if spec.required and name not in given:
            raise InvalidInput(f"{where}.{name}", None, spec.accepted)
        try:
            values[name] = spec.parse(given[name]) if name in given else spec.default
        except InvalidInput as error:
            raise InvalidInput(f"{where}.{name}", given[name], error.accepted) from None
    rule = Rule(**values)
    _require_sense(where, rule)
    return rule


def _require_sense(where: str, rule: Rule) -> None:
    if not rule.match:
        raise InvalidInput(f"{where}.match", list(rule.match), "at least one pattern")
    if rule.sort and rule.zorder:
        raise InvalidInput(f"{where}.zorder", list(rule.zorder), "nothing where sort is given")
    if rule.num_files is not None and (rule.sort or rule.zorder or rule.target_bytes):
        accepted = "null where sort, zorder or target_bytes is given"
        raise InvalidInput(f"{where}.num_files", rule.num_files, accepted)
    if (rule.athena_workgroup is None) != (rule.slower_than_seconds is None):
        accepted = "both athena_workgroup and slower_than_seconds, or neither"
        raise InvalidInput(f"{where}.slower_than_seconds", rule.slower_than_seconds, accepted)
    for name, floor in _FLOORS.items():
        days = getattr(rule, name)
        if days < floor and not rule.below_floor:
            accepted = (
                f"at least {floor:g}: writers and readers that are still at work lose data below;"
                " with below_floor true any"
            )
            raise InvalidInput(f"{where}.{name}", days, accepted)
