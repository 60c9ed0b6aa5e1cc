"""The job file: source, destination and settings of runs, each under a name.

    [logs]
    s3_source_uri = "s3://my-logs/raw/"
    s3_destination_uri = "s3://my-lake/compacted/"
    date_format = "%Y/%m/%d"
    window = "today-7..today"
    formats = [{match = "*.csv", format = "csv", header = true}]

Fields are those of a run's input, and ``endpoint_url``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor.escaping import visible
from compactor.formats.declaration import Declaration
from compactor.scanning.proposals import Proposal
from compactor.settings.settings import Settings
from compactor.settings.wire import wire_fields

#: Found in the working directory.
JOB_FILE = "compactor.toml"
ENDPOINT = "endpoint_url"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_URL = re.compile(r"https?://[^/\s]+/?")
# By this program, or by the service that started the run: a UUID.
_MADE_RUN_ID = re.compile(r"\d{8}T\d{6}|[0-9a-f]{8}-[0-9a-f]{4}-")
_NAME_ACCEPTED = "letters, digits, - and _"


def is_name(word: str) -> bool:
    """Return whether a word can be the name of a job."""
    return _NAME.fullmatch(word) is not None


def is_made_run_id(word: str) -> bool:
    """Return whether a word has the form of a run's id that no person chose."""
    return _MADE_RUN_ID.match(word) is not None


def read_job(file: Path, name: str) -> dict[str, Any] | None:
    """Return the fields of a job, checked; None if the file has no job of this name.

    Raises:
        InvalidInput: the file cannot be read, or a field of this job is rejected; the message names
            file, job, field, value and what is accepted.
    """
    job = _read(file).get(name)
    if job is None:
        return None
    where = f"{file} [{name}]"
    if not isinstance(job, Mapping):
        raise InvalidInput(f"{file} {name}", job, f"a table: [{name}] on a line of its own")
    fields = {one: _plain(value) for one, value in job.items()}
    endpoint = fields.get(ENDPOINT, "http://default")
    if not (isinstance(endpoint, str) and _URL.fullmatch(endpoint)):
        raise InvalidInput(f"{where} {ENDPOINT}", endpoint, "a URL such as http://localhost:9000")
    given = {one: value for one, value in fields.items() if one != ENDPOINT}
    try:
        Settings.from_input(given)
    except InvalidInput as error:
        raise InvalidInput(f"{where} {error.field}", error.value, error.accepted) from None
    return {**wire_fields(given), **({ENDPOINT: endpoint} if ENDPOINT in fields else {})}


def no_job(file: Path, name: str, field: str, *, of_stack: bool = False) -> InvalidInput:
    """Return the error that a word is neither a URI nor a job.

    Args:
        file: the job file, which may be absent.
        name: the word.
        field: that the word was given for.
        of_stack: whether the command takes runs of a stack, too.
    """
    accepted = "an s3:// URI, or the name of a job"
    if of_stack:
        accepted += ", or a run with its --stack"
    if not file.exists():
        advice = f"there is no {file}; compactor scan SOURCE --save {name} writes one"
    else:
        jobs = [one for one, job in _read(file).items() if isinstance(job, Mapping)]
        near = get_close_matches(name, jobs, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        advice = f"{file} has {', '.join(jobs) or 'none'}{meant}"
    return InvalidInput(field, name, f"{accepted}: {advice}")


def require_free(file: Path, name: str) -> None:
    """Check that a job can be saved under a name.

    Raises:
        InvalidInput: the name is invalid or taken, or the file cannot be read.
    """
    if not is_name(name):
        raise InvalidInput("--save", name, _NAME_ACCEPTED)
    if file.exists() and name in _read(file):
        accepted = f"another name, or delete [{name}] from {file} first"
        raise InvalidInput("--save", name, f"{accepted}: it has this job already")


def save_job(file: Path, name: str, fields: Mapping[str, Any], formats: Sequence[str]) -> None:
    """Append a job to the file, which is created if absent.

    Args:
        file: the job file.
        name: of the job.
        fields: of the job.
        formats: lines that say how its field ``formats`` came about, and declarations to choose.

    Raises:
        OSError: it cannot be written.
    """
    lines = [f"[{name}]"]
    lines += [f"{one} = {_toml(value)}" for one, value in fields.items() if one != "formats"]
    lines += formats
    separator = "\n" if file.exists() and file.stat().st_size else ""
    with file.open("a", encoding="utf-8") as job:
        job.write(separator + "\n".join(lines) + "\n")


def format_lines(proposals: Sequence[Proposal], given: Sequence[Declaration]) -> list[str]:
    """Return the field ``formats`` of a job in TOML, with the evidence as comments.

    Declarations of which the evidence is unsure are comments, to choose one of.

    Args:
        proposals: of the job.
        given: declarations of a person.
    """
    lines = [f"  {_toml(one.to_dict())}," for one in given]
    for proposal in proposals:
        if not proposal.options:
            continue
        declared = [one.to_dict() for one in proposal.declared]
        lines.append(_comment(f"{proposal.match}: {proposal.confidence}; {proposal.evidence}"))
        lines += [f"  {_toml(one)}," for one in declared]
        if not declared:
            lines.append("  # left alone unless you remove the # in front of one line")
            choices = ({"match": proposal.match, **one} for one in proposal.options)
            lines += [f"  # {_toml(one)}," for one in choices]
    return ["formats = [", *lines, "]"] if lines else []


def _comment(text: str) -> str:
    return f"  # {visible(text)}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput("job file", str(file), f"a TOML file ({error})") from None


def _plain(value: object) -> object:
    """Return a TOML value as JSON has it; dates may be written without quotes."""
    return value.isoformat() if isinstance(value, date) else value


def _toml(value: object) -> str:
    """Return text, a number, a switch, or lists and inline tables of these in TOML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name} = {_toml(one)}' for name, one in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON is TOML here, except for characters that only TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
