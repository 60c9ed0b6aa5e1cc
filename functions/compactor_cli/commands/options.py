"""Options that several commands share, with those for the fields of a run."""

from __future__ import annotations

import argparse

from compactor.settings.arguments import (
    DESTINATION,
    SOURCE,
    STATE,
    add_fields,
    add_named,
    fields_from,
)
from compactor.settings.arguments import add_places as add_uris
from compactor_cli.jobs import JOB_FILE

__all__ = [
    "DESTINATION",
    "SOURCE",
    "STATE",
    "add_common",
    "add_fields",
    "add_named",
    "add_places",
    "add_state",
    "fields_from",
]


def add_places(parser: argparse.ArgumentParser, *names: str, optional: bool = False) -> None:
    """Add positional URIs: SOURCE, DEST or both, and the job file that can name them."""
    add_uris(parser, *names, optional=optional)
    parser.add_argument(
        "--job-file",
        metavar="FILE.toml",
        help="file with jobs; the name of one stands for the URIs, and its settings are the"
        f" defaults of the other options (by default {JOB_FILE} in this directory)",
    )


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
