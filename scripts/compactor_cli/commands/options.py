"""Options that several commands share, with those for the fields of a run."""

from __future__ import annotations

import argparse

from compactor.settings.arguments import (
    DESTINATION,
    POLICIES,
    SOURCE,
    STATE,
    add_fields,
    add_named,
    add_places,
    fields_from,
)

__all__ = [
    "DESTINATION",
    "POLICIES",
    "SOURCE",
    "STATE",
    "add_common",
    "add_fields",
    "add_named",
    "add_places",
    "add_state",
    "fields_from",
]


def add_common(parser: argparse.ArgumentParser) -> None:
    """``--endpoint-url`` and ``--json``."""
    parser.add_argument(
        "--endpoint-url", metavar="URL", help="S3-compatible endpoint (by default AWS)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add ``--state-uri`` only, for commands without the other fields."""
    add_named(parser, STATE)
