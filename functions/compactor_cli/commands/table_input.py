"""The tables that a command names, by options or in the JSON input of a maintenance run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from compactor.errors import CompactorError, InvalidInput
from compactor.s3.store import S3Store
from compactor.settings.tables import TABLE_ACCEPTED, TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import plural
from compactor_cli.commands.documents import read_object
from compactor_cli.commands.failures import EXIT_FAILED, EXIT_USAGE, Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_note, progress
from compactor_tables.aws.glue_catalog import GlueCatalog
from compactor_tables.request import REQUEST_FIELDS, MaintenanceRequest, read_request
from compactor_tables.table_discovery import find_tables

_INPUT_ACCEPTED = "a JSON document with the fields of a maintenance run"
_POLICIES_ACCEPTED = "a JSON document with a list of rules"
_CONCURRENT = 4
_T = TypeVar("_T")


def add_tables(parser: argparse.ArgumentParser) -> None:
    """Add TABLE, patterns, prefixes, ``--policies`` and ``--input``."""
    parser.add_argument("tables", metavar="TABLE", nargs="*", help=TABLE_ACCEPTED)
    for name, metavar in (("glue_tables", "DATABASE.TABLE"), ("delta_prefixes", "URI")):
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            metavar=metavar,
            action="append",
            help=f"{REQUEST_FIELDS[name].meaning} May be given several times.",
        )
    parser.add_argument(
        "--policies",
        metavar="FILE.json",
        help="rules for tables; the first match applies",
    )
    parser.add_argument(
        "--input",
        metavar="FILE.json",
        help="the whole input, as the deployed state machine takes it, instead of all of these;"
        " - reads standard input",
    )


def request_from(args: argparse.Namespace) -> MaintenanceRequest:
    """Return the input of a read-only command.

    Raises:
        InvalidInput: it is invalid, or both a document and options were given.
    """
    given = document_from(args)
    return read_request(given, reads_only=True)


def none_found(request: MaintenanceRequest) -> str:
    """Return the message that no table matches the patterns or prefixes."""
    wanted = ", ".join((*request.glue_tables, *request.delta_prefixes))
    return f"no table matches {wanted}"


def document_from(args: argparse.Namespace) -> dict[str, Any]:
    """Return the given input, from options or from a document.

    Raises:
        InvalidInput: both were given, or a document cannot be read or repeats a key.
    """
    fields = {
        name: getattr(args, name)
        for name in ("tables", "glue_tables", "delta_prefixes", "policies")
        if getattr(args, name)
    }
    if args.input is None:
        if "policies" in fields:
            fields["policies"] = _rules(fields["policies"])
        return fields
    if fields:
        raise InvalidInput("--input", args.input, f"either a document or {', '.join(fields)}")
    return _parsed("--input", args.input, _INPUT_ACCEPTED)


def _rules(path: str) -> object:
    text = _text("--policies", path, _POLICIES_ACCEPTED)
    try:
        # Wrapped in an object, so that the strict reader accepts it.
        return read_object(f'{{"policies": {text}}}')["policies"]
    except (ValueError, KeyError) as error:
        raise InvalidInput("--policies", path, f"{_POLICIES_ACCEPTED} ({error})") from None


def _parsed(option: str, path: str, accepted: str) -> dict[str, Any]:
    try:
        return read_object(_text(option, path, accepted))
    except ValueError as error:
        raise InvalidInput(option, path, f"{accepted} ({error})") from None


def _text(option: str, path: str, accepted: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(option, path, f"{accepted} ({error})") from None


class Outcome(NamedTuple, Generic[_T]):
    """The result for one table, or the error that prevented it."""

    table: TableAddress
    found: _T | None
    error: CompactorError | None = None


def of_each_table(
    request: MaintenanceRequest,
    endpoint_url: str | None,
    what: str,
    work: Callable[[TableAddress, S3Store], _T],
) -> list[Outcome[_T]]:
    """Apply a function to all tables of a request, several concurrently.

    Args:
        request: names the tables.
        endpoint_url: of an S3-compatible store; None for AWS.
        what: name of the step, for the progress bar.
        work: called with each table.

    Raises:
        InvalidInput: the request is invalid; an error of one table is in its outcome.
        TransientStoreError: the endpoint does not answer, or a service failed while tables were
            searched for.
    """
    # Reports an unreachable endpoint once, instead of once per table.
    store = open_store(endpoint_url, _known_bucket(request))

    def one(table: TableAddress) -> Outcome[_T]:
        try:
            return Outcome(table, work(table, store))
        except CompactorError as error:
            return Outcome(table, None, error)

    with progress("looking for tables"):
        tables = find_tables(request, store, GlueCatalog())
    for name in tables.unnamed:
        print_note(f"skipped {name}: its name cannot be written as a table address")
    outcomes: list[Outcome[_T]] = []
    with progress(what, len(tables.tables)) as bar, ThreadPoolExecutor(_CONCURRENT) as pool:
        for outcome in pool.map(one, tables.tables):
            outcomes.append(outcome)
            bar.advance()
    return outcomes


def _known_bucket(request: MaintenanceRequest) -> str:
    """Return a bucket that the request names; empty if only a catalog knows the locations."""
    addresses = [parse_table(one).location for one in request.tables]
    places = [one for one in addresses if one is not None]
    places += [S3Uri.parse("delta_prefixes", one) for one in request.delta_prefixes]
    return places[0].bucket if places else ""


def print_documents(outcomes: Sequence[Outcome[_T]], shown: Callable[[_T], Any]) -> None:
    """Print all outcomes as one JSON document."""
    tables = [
        {"table": one.table.text, "error": f"{type(one.error).__name__}: {one.error}"}
        if one.found is None
        else shown(one.found)
        for one in outcomes
    ]
    print(json.dumps({"tables": tables}, indent=2))


def require_all(outcomes: Sequence[Outcome[_T]]) -> None:
    """Check that every table has a result.

    Raises:
        Failure: names the first error, and how many there are.
    """
    failed = [one for one in outcomes if one.error is not None]
    if not failed:
        return
    error = failed[0].error
    more = f" (and {plural(len(failed) - 1, 'more table')})" if len(failed) > 1 else ""
    code = EXIT_USAGE if isinstance(error, InvalidInput) and len(outcomes) == 1 else EXIT_FAILED
    raise Failure(f"{failed[0].table.text}: {type(error).__name__}: {error}{more}", code)
