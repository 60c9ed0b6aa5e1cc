"""One event of a function's log: its level, its text, and the run it belongs to.

Lambda writes an invocation between a START and a REPORT line, or between platform.start and
platform.report if the log format is JSON, into a stream that serves one invocation at a time.
Handlers log JSON; what Lambda itself logs about a crash or timeout is text.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
_LEVELS = {**logging.getLevelNamesMapping(), "TRACE": DEBUG}
_RUN_FIELDS = ("run_id", "correlation_id")
_OWN_FIELDS = frozenset(
    {
        "level", "log_level", "message", "errorMessage", "errorType", "timestamp", "time",
        "location", "logger", "service", "cold_start", "function_name", "function_arn",
        "function_memory_size", "function_request_id", "requestId", "xray_trace_id",
        "exception", "exception_name", "stackTrace", "stack_trace", "type", "record",
        *_RUN_FIELDS,
    }
)  # fmt: skip
_FAULT = re.compile(r"Task timed out after|Runtime\.\w+|Status: (?:timeout|error)|\[ERROR\]")
_PLATFORM = ("START ", "END ", "REPORT ", "INIT_", "XRAY ", "EXTENSION", "TELEMETRY")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event.

    Attributes:
        at: UNIX milliseconds.
        function: the function's name.
        level: as in :mod:`logging`.
        run_id: the run it names; empty if it names none.
        starts, ends: whether it is the first, or the last, of its invocation.
    """

    at: int
    function: str
    level: int
    text: str
    run_id: str = ""
    starts: bool = False
    ends: bool = False

    @property
    def shown(self) -> str:
        """The line as text: time (UTC), level, function and message."""
        moment = datetime.fromtimestamp(self.at / 1000, UTC)
        time = moment.strftime("%Y-%m-%d %H:%M:%S") + f".{self.at % 1000:03d}"
        return f"{time} {logging.getLevelName(self.level):7} {self.function}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """Return the line for JSON."""
        return {
            "time": datetime.fromtimestamp(self.at / 1000, UTC).isoformat(),
            "level": logging.getLevelName(self.level),
            "function": self.function,
            "text": self.text,
        }


def read_line(function: str, at: int, message: str) -> LogLine:
    """Parse one event.

    Args:
        function: whose log it is from.
        at: UNIX milliseconds.
        message: as CloudWatch keeps it.
    """
    text = message.rstrip("\n")
    try:
        record = json.loads(text) if text.startswith("{") else None
    except ValueError:
        record = None
    if not isinstance(record, Mapping):
        return LogLine(
            at,
            function,
            _level_of(text),
            text,
            starts=text.startswith("START "),
            ends=text.startswith("REPORT "),
        )
    kind = str(record.get("type", ""))
    if kind.startswith("platform.") and isinstance(record.get("record"), Mapping):
        return _platform_line(function, at, kind, record["record"])
    run_id = next((str(record[name]) for name in _RUN_FIELDS if record.get(name)), "")
    return LogLine(at, function, _record_level(record), _record_text(record, text), run_id)


def _platform_line(function: str, at: int, kind: str, record: Mapping[str, Any]) -> LogLine:
    status = str(record.get("status", "success"))
    error = str(record.get("errorType") or "")
    text = " ".join(part for part in (kind, status, error) if part)
    return LogLine(
        at,
        function,
        DEBUG if status == "success" else ERROR,
        text,
        starts=kind == "platform.start",
        ends=kind == "platform.report",
    )


def _level_of(text: str) -> int:
    if _FAULT.search(text):
        return ERROR
    if text.startswith("[WARNING]"):
        return WARNING
    return DEBUG if text.startswith(_PLATFORM) else INFO


def _record_level(record: Mapping[str, Any]) -> int:
    # Metrics are log events too, in CloudWatch's embedded metric format.
    default = "DEBUG" if "_aws" in record else "INFO"
    name = str(record.get("level") or record.get("log_level") or default).upper()
    return _LEVELS.get(name, INFO)


def _record_text(record: Mapping[str, Any], text: str) -> str:
    """Return the message, the last line of its traceback, and further fields."""
    if "_aws" in record:
        return text
    message = record.get("message") or record.get("errorMessage")
    parts = [str(one) for one in (record.get("errorType"), message) if one]
    head = ": ".join(parts) or text
    exception = str(record.get("exception") or "").strip().rpartition("\n")[2]
    fields = [f"{name}={value}" for name, value in record.items() if name not in _OWN_FIELDS]
    return " ".join([head, *([exception] if exception else []), *fields])
