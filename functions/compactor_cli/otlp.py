"""A run as a trace and as metrics, through OpenTelemetry's SDK; needs the extra ``otel``."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, StatusCode, set_span_in_context

import compactor
from compactor.discovery.discover import Discovery
from compactor.orchestration.messages import FAILED, Answer, Order
from compactor_cli.console import print_error
from compactor_cli.run_metrics import Measured
from compactor_cli.telemetry import Telemetry

_SCOPE = "s3-compactor"
_NANOSECONDS = 1_000_000_000
_UNITS = {"seconds": "s", "bytes": "By"}


@contextmanager
def exported(signals: Collection[str], places: Mapping[str, str]) -> Iterator[Telemetry]:
    """Yield telemetry of the SDK, and export the rest of it at the end.

    Args:
        signals: ``TRACES``, ``METRICS`` or both.
        places: attributes of the trace and of each metric.
    """
    log, resource = _Log(), _resource()
    tracers = TracerProvider(resource=resource)
    if "TRACES" in signals:
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    wanted = "METRICS" in signals
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if wanted else []
    meters = MeterProvider(readers, resource)
    try:
        with tracers.get_tracer(_SCOPE).start_as_current_span("run", attributes=places) as span:
            yield _Exported(tracers, meters, span, places)
    finally:
        tracers.shutdown()
        meters.shutdown()
        log.report()


class _Exported(Telemetry):
    def __init__(
        self,
        tracers: TracerProvider,
        meters: MeterProvider,
        span: Span,
        places: Mapping[str, str],
    ) -> None:
        self._tracer = tracers.get_tracer(_SCOPE)
        self._meter = meters.get_meter(_SCOPE, compactor.__version__)
        self._span = span
        self._places = places
        self._began = time.time_ns()

    def discovered(self, found: Discovery) -> None:
        self._child("discover", self._began).end()

    def answered(self, order: Order, answer: Answer) -> None:
        counts = answer.compacted.counts if answer.compacted else order.before
        # A call that failed left no time, and clean-up measures none.
        seconds = counts.seconds - order.before.seconds
        span = self._child(order.task.value, time.time_ns() - int(seconds * _NANOSECONDS))
        span.set_attribute("partition", order.path)
        span.set_attribute("source_objects", counts.objects_in - order.before.objects_in)
        span.set_attribute("output_objects", counts.objects_out - order.before.objects_out)
        if answer.status == FAILED:
            span.set_status(StatusCode.ERROR, f"{answer.error}: {answer.cause}")
        span.end()

    def ended(self, run_id: str, measured: Measured) -> None:
        self._span.set_attribute("run_id", run_id)
        if measured.failed:
            self._span.set_status(StatusCode.ERROR)
        for one in measured.metrics():
            unit = _UNITS.get(one.name.rpartition("_")[2], "")
            gauge = self._meter.create_gauge(f"compactor_{one.name}", unit, one.description)
            gauge.set(one.value, {**self._places, **one.labels})

    def _child(self, name: str, began: int) -> Span:
        context = set_span_in_context(self._span)
        return self._tracer.start_span(name, context, start_time=began)


class _Log(logging.Handler):
    """Keeps what the SDK logs off the terminal, and reports the first line at the end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._first = ""
        self._of = logging.getLogger("opentelemetry")
        self._of.propagate = False
        self._of.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._first = self._first or " ".join(record.getMessage().split())

    def report(self) -> None:
        self._of.removeHandler(self)
        if self._first:
            print_error(f"compactor: telemetry was not exported as a whole: {self._first}")


def _resource() -> Resource:
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {SERVICE_VERSION: compactor.__version__}
    # What is given here would win over the variables.
    return Resource.create(own if named else {**own, SERVICE_NAME: _SCOPE})
