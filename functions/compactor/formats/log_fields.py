"""The fields of AWS log lines: of access logs by their documented form, of others by their header.

Sources: "Access logs for your Application Load Balancer" in the Elastic Load Balancing guide,
"Amazon S3 server access log format" in the Amazon S3 User Guide, and "Query Application Load
Balancer logs" in the Athena user guide for the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

#: Column of what newer logs append to the documented fields.
FURTHER = "further_fields"
_NO_VALUE = "-"


@dataclass(frozen=True)
class LogLines:
    """The documented form of a log's lines.

    Attributes:
        fields: space-separated names. A leading ``"`` marks fields that the log quotes, a leading
            ``[`` those in brackets.
        begins: regular expression that recognises the first line of an object.
        every: number of fields that each line has; older logs lack some of the others.
        groups: of fields that have another form, by name.
        appended: what newer logs may have after these fields.
    """

    fields: str
    begins: str
    every: int
    groups: Mapping[str, str]
    appended: str = ".*"

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(one.lstrip('"[') for one in self.fields.split())

    @property
    def pattern(self) -> str:
        """A pattern with a group for each column; fields appended by newer logs are skipped."""
        return f"{self._documented}(?: {self.appended})?"

    def values_of(self, line: str) -> list[str | None] | None:
        """Return a line's fields and what follows them, None for what has no value.

        Returns:
            As many values as ``names``, and one more; None if the line has another form.
        """
        match = self._whole.fullmatch(line)
        if match is None:
            return None
        # Of a quoted field, the group is None if the log has no value.
        return [None if value == _NO_VALUE else value for value in match.groups()]

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(f"{self._documented}(?: ({self.appended}))?")

    @cached_property
    def _documented(self) -> str:
        columns = zip(self.names, self.fields.split(), strict=True)
        groups = [self.groups.get(name) or _group(column) for name, column in columns]
        later = "".join(f"(?: {group})?" for group in groups[self.every :])
        return " ".join(groups[: self.every]) + later


def _group(column: str) -> str:
    if column.startswith('"'):
        return '(?:"([^"]*)"|-)'
    return r"\[([^\]]*)\]" if column.startswith("[") else '([^ "]*)'


# What a client sent: quotes stand in it as they are.
_SENT = '(?:"(.*?)"|-)'
#: The known forms of access logs, by name.
LOGS: Mapping[str, LogLines] = {
    "alb": LogLines(
        "type time elb client target request_processing_time target_processing_time"
        " response_processing_time elb_status_code target_status_code received_bytes sent_bytes"
        ' "request "user_agent ssl_cipher ssl_protocol target_group_arn "trace_id "domain_name'
        ' "chosen_cert_arn matched_rule_priority request_creation_time "actions_executed'
        ' "redirect_url "error_reason "target_list "target_status_list "classification'
        ' "classification_reason conn_trace_id',
        r"(?:https?|h2|grpcs?|wss?) \d{4}-\d\d-\d\dT\S+Z \S+/",
        every=18,
        groups={"request": _SENT, "user_agent": _SENT},
    ),
    "s3_access": LogLines(
        "bucket_owner bucket [time remote_ip requester request_id operation key"
        ' "request http_status error_code bytes_sent object_size total_time turn_around_time'
        ' "referrer "user_agent version_id host_id signature_version cipher_suite'
        " authentication_type host_header tls_version access_point_arn acl_required",
        r"[0-9a-f]{64} \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:",
        every=17,
        # A role's session may have blanks in its name.
        groups={
            "requester": '([^"]*?)',
            "request_id": "([0-9A-Z]{16}|-)",
            **dict.fromkeys(("request", "referrer", "user_agent"), _SENT),
        },
        appended='[^"]*',
    ),
}


def name_of_log(line: str) -> str:
    """Return the name of the form that begins like this line; empty for none."""
    return next((name for name, log in LOGS.items() if re.match(log.begins, line)), "")


def flow_names(header: str) -> list[str]:
    """Return the columns of the header of VPC and transit gateway flow logs."""
    return [name.replace("-", "_") for name in header.split()]


def cloudfront_names(header: Sequence[str]) -> list[str]:
    """Return the columns of the comments at the start of CloudFront logs."""
    fields = next((line for line in header if line.startswith("#Fields:")), "#Fields:")
    return [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in fields.split()[1:]]
