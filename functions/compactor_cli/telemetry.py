"""Exports a run over OpenTelemetry, if the standard variables name an endpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from compactor.orchestration.workers import Observer
from compactor_cli.console import print_error
from compactor_cli.machine.extras import install
from compactor_cli.run_metrics import Measured

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SIGNALS = ("TRACES", "METRICS")


class Telemetry(Observer):
    """The telemetry of one run; this one exports nothing."""

    def ended(self, run_id: str, measured: Measured) -> None:
        """Add the end of the run."""


@contextmanager
def telemetry(places: Mapping[str, str]) -> Iterator[Telemetry]:
    """Open the telemetry of a run and export what is left at its end.

    A missing package or an endpoint that does not answer is reported, and fails no run.

    Args:
        places: source and destination of the run, by these names.
    """
    signals = [signal for signal in _SIGNALS if _is_wanted(signal)]
    if not signals:
        yield Telemetry()
        return
    try:
        from compactor_cli.otlp import exported  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        print_error(f"compactor: telemetry needs more than the base install: {install('otel')}")
        yield Telemetry()
        return
    with exported(signals, places) as made:
        yield made


def _is_wanted(signal: str) -> bool:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    endpoint = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or os.environ.get(_ENDPOINT)
    return bool(endpoint) and os.environ.get(f"OTEL_{signal}_EXPORTER") != "none"
