"""A run's trace and metrics, received over OTLP/HTTP and decoded by OpenTelemetry's own schema."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import REPO_ROOT
from tests.e2e.test_cli_commands import EACH, PARTITIONS, Lake

_RUN = """
import json, sys
from compactor_cli.commands import main
code = main(sys.argv[1:])
print(json.dumps([code, [one for one in sys.modules if one.startswith("opentelemetry")]]))
"""


class Collector:
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    collector.traces.append(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/metrics":
                    collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def gauges(self) -> dict[str, float]:
        """The last value of each gauge without a reason."""
        return {
            metric.name: point.as_double
            for request in self.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.gauge.data_points
            if {one.key for one in point.attributes} == {"source", "destination"}
        }

    def service(self) -> set[str]:
        resources = [one.resource for request in self.traces for one in request.resource_spans]
        resources += [one.resource for request in self.metrics for one in request.resource_metrics]
        return {
            one.value.string_value
            for resource in resources
            for one in resource.attributes
            if one.key == "service.name"
        }


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def lake(s3) -> Lake:
    return Lake(s3)


def run(lake: Lake, environment: Mapping[str, str], *words: str) -> tuple[int, list[str], str]:
    """Exit code, modules of OpenTelemetry, and standard error of a run in its own process."""
    first = f"{given}{os.pathsep}" if (given := environment.get("PYTHONPATH")) else ""
    path = os.pathsep.join(str(REPO_ROOT / name) for name in ("functions", "scripts", "spark"))
    command = [sys.executable, "-c", _RUN, "run", *lake.uris, *lake.endpoint, "--depth", "1"]
    done = subprocess.run(
        [*command, "--workers", "1", *words],
        env={**os.environ, **environment, "PYTHONPATH": first + path},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, modules, done.stderr


def read(file: Path) -> dict[str, float]:
    families = text_string_to_metric_families(file.read_text("utf-8"))
    return {sample.name: sample.value for family in families for sample in family.samples}


def attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def test_a_run_is_one_trace_with_a_span_for_each_partition(lake: Lake, collector: Collector):
    variable = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    code, _, err = run(lake, variable)
    assert (code, "telemetry" in err) == (0, False)
    (root,) = [span for span in collector.spans() if span.name == "run"]
    children = [span for span in collector.spans() if span.name != "run"]
    assert sorted(span.name for span in children) == ["compact"] * PARTITIONS + ["discover"]
    assert {span.parent_span_id for span in children} == {root.span_id}
    assert {span.trace_id for span in children} == {root.trace_id}
    paths = {attributes(span)["partition"] for span in children if span.name == "compact"}
    assert paths == {f"p{p}/" for p in range(PARTITIONS)}
    for span in children:
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    source, destination = lake.uris
    assert attributes(root).items() >= {"source": source, "destination": destination}.items()
    assert (attributes(root)["run_id"] != "", root.status.code) == (True, Status.STATUS_CODE_UNSET)
    assert collector.service() == {"s3-compactor"}


def test_metrics_are_those_of_the_file_for_prometheus(lake: Lake, collector: Collector, tmp_path):
    file = tmp_path / "compactor.prom"
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_SERVICE_NAME": "nightly",
    }
    assert run(lake, variables, "--metrics-file", str(file))[0] == 0
    in_file = read(file)
    assert collector.gauges() == in_file
    assert in_file["compactor_source_objects"] == PARTITIONS * EACH
    assert (collector.traces, collector.service()) == ([], {"nightly"})


def test_the_oldest_candidate_is_that_of_s3_also_in_a_partition_at_rest(lake: Lake, tmp_path):
    run(lake, {})
    key = "logs/p0/new.json"
    lake.write(key, b'{"id":"new"}\n')
    modified = lake.client.head_object(Bucket=lake.bucket, Key=key)["LastModified"].timestamp()
    lake.write("logs/p0/newer.json", b'{"id":"newer"}\n')
    file = tmp_path / "compactor.prom"
    for _ in range(2):
        assert run(lake, {}, "--metrics-file", str(file))[0] == 0
        found = read(file)
        assert found["compactor_backlog_objects"] == 2
        assert found["compactor_oldest_candidate_timestamp_seconds"] == pytest.approx(modified)


def test_a_failed_run_is_a_failed_trace(lake: Lake, collector: Collector):
    run(lake, {})
    for key in lake.keys("_compactor/compacted/partitions/p0/"):
        lake.write(key, b"damaged")
    lake.write("logs/p0/new.json", b'{"id":"new"}\n')
    young = ("--settle-seconds", "0", "--open-partition-seconds", "0")
    variable = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    assert run(lake, variable, *young)[0] == 1
    failed = {one.name for one in collector.spans() if one.status.code == Status.STATUS_CODE_ERROR}
    assert failed == {"run", "compact"}
    assert collector.gauges()["compactor_run_failed"] == 1


def test_an_endpoint_that_does_not_answer_fails_no_run(lake: Lake):
    nowhere = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    code, _, err = run(lake, nowhere)
    assert code == 0
    assert err.count("compactor: telemetry was not exported as a whole: ") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:1", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_imported_unless_it_is_asked_for(lake: Lake, variables: dict[str, str]):
    code, modules, _ = run(lake, variables)
    assert (code, modules) == (0, [])


def test_a_missing_extra_is_named_and_fails_no_run(lake: Lake, collector: Collector, tmp_path):
    # A package of this name without a content shadows the installed one.
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("")
    code, _, err = run(
        lake,
        {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "PYTHONPATH": str(tmp_path)},
    )
    assert (code, collector.traces) == (0, [])
    assert "pip install 's3-compactor[otel]'" in err
