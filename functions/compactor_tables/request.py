"""The input of a maintenance run, and its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

from compactor.errors import InvalidInput
from compactor.settings.specs import (
    Declared,
    FieldSpec,
    Reader,
    Required,
    flag,
    globs,
    names,
    whole,
)
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri, parse_location
from compactor_tables.policies import Policies, read_policies

_WHICH, _HOW, _WHERE = "Which tables", "How", "Where"
_DATABASES = Reader(
    'a list of patterns of tables in the Glue Data Catalog such as ["bronze.*"]', globs().read
)


def _read_tables(value: object) -> tuple[str, ...]:
    addresses = names().read(value)
    assert isinstance(addresses, tuple)  # noqa: S101 - what names() reads
    return tuple(parse_table(one).text for one in addresses)


def _read_prefixes(value: object) -> tuple[str, ...]:
    uris = names().read(value)
    assert isinstance(uris, tuple)  # noqa: S101 - what names() reads
    return tuple(parse_location(uri).uri for uri in uris)


def _read_state(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return parse_location(value).uri


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """The input of a maintenance run, checked."""

    s3_state_uri: Annotated[
        str,
        Declared(
            _WHERE,
            Required.REQUIRED,
            Reader("s3://bucket/prefix/", _read_state),
            "Where orders, receipts and leases lie; no table may lie there.",
        ),
    ]
    tables: Annotated[
        tuple[str, ...],
        Declared(
            _WHICH,
            (),
            Reader('a list of tables such as ["glue:bronze.events"]', _read_tables),
            "Tables by their addresses, as `table` names one.",
        ),
    ]
    glue_tables: Annotated[
        tuple[str, ...],
        Declared(_WHICH, (), _DATABASES, "Patterns DATABASE.TABLE of the Iceberg tables in Glue."),
    ]
    delta_prefixes: Annotated[
        tuple[str, ...],
        Declared(
            _WHICH,
            (),
            Reader('a list of prefixes such as ["s3://lake/gold/"]', _read_prefixes),
            "Where Delta tables are looked for, by their `_delta_log/`.",
        ),
    ]
    policies: Annotated[
        Policies,
        Declared(
            _HOW,
            [],
            Reader("a list of rules (docs/maintenance.md)", read_policies),
            "The rules: for each table the first that matches counts.",
        ),
    ]
    dry_run: Annotated[bool, Declared(_HOW, False, flag(), "Plan and report, and touch nothing.")]
    only_when_due: Annotated[
        bool,
        Declared(
            _HOW,
            False,
            flag(),
            "Maintain a table only when files_over, every or slower_than_seconds of its rule"
            " says so.",
        ),
    ]
    max_tables: Annotated[
        int, Declared(_HOW, 10_000, whole(1, 1_000_000), "A run that finds more tables fails.")
    ]

    @property
    def state(self) -> S3Uri:
        """The prefix of the run's documents."""
        return parse_location(self.s3_state_uri)


def _declared() -> Mapping[str, FieldSpec]:
    hints = get_type_hints(MaintenanceRequest, include_extras=True)
    return {name: hint.__metadata__[0].named(name) for name, hint in hints.items()}


#: Each field of the input, in documented order.
REQUEST_FIELDS: Mapping[str, FieldSpec] = MappingProxyType(_declared())


def read_request(document: object, *, reads_only: bool = False) -> MaintenanceRequest:
    """Check the input of a maintenance run.

    Args:
        document: an object, decoded from JSON.
        reads_only: the caller writes nothing, so the document may omit ``s3_state_uri``, which is
            empty then.

    Raises:
        InvalidInput: a field is invalid; the error names it, its value and what is accepted.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput("input", document, "an object of fields (docs/maintenance.md)")
    unknown = [name for name in document if name not in REQUEST_FIELDS]
    if unknown:
        raise InvalidInput(unknown[0], document[unknown[0]], ", ".join(REQUEST_FIELDS))
    values: dict[str, Any] = {}
    for name, spec in REQUEST_FIELDS.items():
        if spec.required and name not in document:
            if not reads_only:
                raise InvalidInput(name, None, spec.accepted)
            values[name] = ""
            continue
        values[name] = spec.parse(document.get(name, spec.default))
    request = MaintenanceRequest(**values)
    if not (request.tables or request.glue_tables or request.delta_prefixes):
        raise InvalidInput("tables", [], "one table at least, or glue_tables, or delta_prefixes")
    return request
