"""Run times of jobs and queries, by the services that ran them.

Glue keeps a job's runs, EMR a cluster's steps (GetJobRuns and ListSteps return the newest first),
EMR Serverless a job's runs, and Athena a workgroup's queries of the last 45 days. Only successful
runs count, because an early failure would make a table look fast.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from compactor.aws.services import Thing, answers_of, service_client
from compactor.settings.tables import DELTA, TableAddress
from compactor_tables.policies import LatencySource
from compactor_tables.service_ports import RunTimes

_MOST_PAGES = 20
_ATHENA_BATCH = 50
# Statements that read; maintenance, ours or others', does not count.
_READS = re.compile(
    r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL
)


class _Run(NamedTuple):
    """A finished run: its begin, UNIX seconds, and its duration."""

    began: float
    seconds: float


def open_run_times(source: LatencySource, table: TableAddress) -> RunTimes:
    """Return the run times of a source; of Athena's queries those that read the table.

    Raises:
        InvalidInput: no AWS region is configured.
    """
    if source.kind == "glue_job":
        return GlueJob(source.name)
    if source.kind == "emr_serverless":
        return ServerlessJob(source.place, source.name)
    if source.kind == "emr_step":
        return ClusterStep(source.place, source.name)
    return AthenaQueries(source.place, table)


class _Asked:
    """Base of the four sources, whose runs come newest first."""

    service = ""

    def __init__(self, thing: Thing, client: Any) -> None:
        self._thing = thing
        self._client = client or service_client(self.service)

    def last(self, count: int, since: float) -> list[float]:
        """See :class:`compactor_tables.service_ports.RunTimes`."""
        with self._answers():
            newest = (one.seconds for one in self._runs(since) if one.began > since)
            return list(islice(newest, count))

    @abstractmethod
    def _runs(self, start: float) -> Iterator[_Run]:
        """Return successful runs, newest first; some may have begun before ``start``."""

    def _answers(self) -> AbstractContextManager[None]:
        return answers_of(f"run times of {self._thing.value}", self._thing)


class GlueJob(_Asked):
    """The runs of a Glue job, by ``glue:GetJobRuns``."""

    service = "glue"

    def __init__(self, name: str, client: Any = None) -> None:
        super().__init__(Thing("latency", f"glue_job:{name}", "a job of Glue"), client)
        self._name = name

    def _runs(self, start: float) -> Iterator[_Run]:
        asked: dict[str, Any] = {"JobName": self._name, "MaxResults": 200}
        for page in _pages(self._client.get_job_runs, asked, "NextToken"):
            runs = page["JobRuns"]
            for one in runs:
                if one["JobRunState"] == "SUCCEEDED":
                    # ExecutionTime excludes the wait for capacity, which does not depend on tables.
                    yield _Run(_seconds(one["StartedOn"]), float(one["ExecutionTime"]))
            if _all_before(start, (one["StartedOn"] for one in runs)):
                return


class ServerlessJob(_Asked):
    """The runs of an EMR Serverless application that have a given name."""

    service = "emr-serverless"

    def __init__(self, application: str, name: str, client: Any = None) -> None:
        value = f"emr_serverless:{application}/{name}"
        super().__init__(Thing("latency", value, "an application of EMR Serverless"), client)
        self._application = application
        self._name = name

    def _runs(self, start: float) -> Iterator[_Run]:
        # The order of the answer is not documented.
        newest = sorted(
            self._named(start), key=lambda run: _seconds(run["createdAt"]), reverse=True
        )
        for run in newest:
            answer = self._client.get_job_run(applicationId=self._application, jobRunId=run["id"])
            one = answer["jobRun"]
            seconds = one.get("totalExecutionDurationSeconds")
            if seconds is not None:
                yield _Run(_seconds(one.get("startedAt", one["createdAt"])), float(seconds))

    def _named(self, start: float) -> Iterator[Mapping[str, Any]]:
        asked: dict[str, Any] = {
            "applicationId": self._application,
            "states": ["SUCCESS"],
            "createdAtAfter": datetime.fromtimestamp(start, UTC),
            "maxResults": 50,
        }
        for page in _pages(self._client.list_job_runs, asked, "nextToken"):
            yield from (one for one in page["jobRuns"] if one.get("name") == self._name)


class ClusterStep(_Asked):
    """The steps of an EMR cluster that have a given name, by ``elasticmapreduce:ListSteps``."""

    service = "emr"

    def __init__(self, cluster: str, name: str, client: Any = None) -> None:
        value = f"emr_step:{cluster}/{name}"
        super().__init__(Thing("latency", value, "a cluster of EMR"), client)
        self._cluster = cluster
        self._name = name

    def _runs(self, start: float) -> Iterator[_Run]:
        asked: dict[str, Any] = {"ClusterId": self._cluster, "StepStates": ["COMPLETED"]}
        for page in _pages(self._client.list_steps, asked, "Marker"):
            times = [one["Status"]["Timeline"] for one in page["Steps"]]
            for one, time in zip(page["Steps"], times, strict=True):
                if one["Name"] == self._name and {"StartDateTime", "EndDateTime"} <= time.keys():
                    began = _seconds(time["StartDateTime"])
                    yield _Run(began, _seconds(time["EndDateTime"]) - began)
            if _all_before(start, (one["CreationDateTime"] for one in times)):
                return


class AthenaQueries(_Asked):
    """The queries of a workgroup that read a table.

    By ``athena:ListQueryExecutions`` and ``athena:BatchGetQueryExecution``. A query counts if its
    text names the table, either qualified by its database or run in it.
    """

    service = "athena"

    def __init__(self, workgroup: str, table: TableAddress, client: Any = None) -> None:
        super().__init__(Thing("latency", f"athena:{workgroup}", "a workgroup of Athena"), client)
        self._workgroup = workgroup
        self._named = _Named(table)

    def _runs(self, start: float) -> Iterator[_Run]:
        asked: dict[str, Any] = {"WorkGroup": self._workgroup, "MaxResults": _ATHENA_BATCH}
        for page in _pages(self._client.list_query_executions, asked, "NextToken"):
            ids = page["QueryExecutionIds"]
            if not ids:
                continue
            answer = self._client.batch_get_query_execution(QueryExecutionIds=ids)
            queries = answer["QueryExecutions"]
            for one in queries:
                millis = one.get("Statistics", {}).get("EngineExecutionTimeInMillis")
                if millis is not None and self._counts(one):
                    began = _seconds(one["Status"]["SubmissionDateTime"])
                    yield _Run(began, millis / 1_000)
            if _all_before(start, (one["Status"]["SubmissionDateTime"] for one in queries)):
                return

    def _counts(self, query: Mapping[str, Any]) -> bool:
        reused = query.get("Statistics", {}).get("ResultReuseInformation", {})
        return (
            query["Status"]["State"] == "SUCCEEDED"
            # A reused result: nothing was read.
            and not reused.get("ReusedPreviousResult")
            and _READS.match(query["Query"]) is not None
            and self._named.is_in(
                query["Query"], query.get("QueryExecutionContext", {}).get("Database", "")
            )
        )


class _Named:
    """Finds a table's name in SQL."""

    def __init__(self, table: TableAddress) -> None:
        if table.kind == DELTA:
            # Assumed to be registered under the name of its directory, in any database.
            name, self._database = table.uri.rstrip("/").rpartition("/")[2], ""
        else:
            name, self._database = table.name[-1], table.name[-2]
        before = rf'"?{re.escape(self._database)}"?\s*\.\s*' if self._database else ""
        self._whole = re.compile(
            rf'(?<![\w"]){before}"?{re.escape(name)}"?(?![\w"])', re.IGNORECASE
        )
        self._alone = re.compile(rf'(?<![\w".])"?{re.escape(name)}"?(?![\w".])', re.IGNORECASE)

    def is_in(self, sql: str, database: str) -> bool:
        """Return whether a query that runs in a database names the table."""
        if self._whole.search(sql):
            return True
        return database.lower() == self._database.lower() and self._alone.search(sql) is not None


def _pages(ask: Any, asked: dict[str, Any], token: str) -> Iterator[Mapping[str, Any]]:
    """Return the pages of a service's answer; ``token`` is the field that names the next page."""
    for _ in range(_MOST_PAGES):
        answer = ask(**asked)
        yield answer
        if not answer.get(token):
            return
        asked[token] = answer[token]


def _all_before(start: float, moments: Iterable[datetime]) -> bool:
    """Return whether a page is older than ``start``, and so all later pages; no if it is empty."""
    found = [_seconds(one) for one in moments]
    return bool(found) and max(found) <= start


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
