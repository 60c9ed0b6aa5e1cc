"""Realistic, seeded, reproducible log objects to try the compactor on.

    spec      what to generate, checked
    arrivals  arrival times: days, hours, bursts, late objects
    drawing   random values of one object, and the sites it may come from
    keys      key names as real systems form them
    events, orders, network, access, trail     the records of each format
    objects   generate(spec) -> GeneratedObject, lazily, in order
    output    write(objects, output_uri), concurrently
    destinations, put_client    writing below an S3 prefix or to a local directory
    command   the options and the run of ``compactor generate``

The same spec produces the same keys and the same plain bytes on every machine. The bytes of
gzip objects also depend on the zlib build that Python was linked with.
"""

from __future__ import annotations

from compactor_cli.generator.command import add_arguments, run
from compactor_cli.generator.objects import GeneratedObject, generate
from compactor_cli.generator.output import Written, write
from compactor_cli.generator.spec import (
    CompressionChoice,
    GeneratorSpec,
    LogFormat,
    parse_formats,
    parse_start,
)

__all__ = [
    "CompressionChoice",
    "GeneratedObject",
    "GeneratorSpec",
    "LogFormat",
    "Written",
    "add_arguments",
    "generate",
    "parse_formats",
    "parse_start",
    "run",
    "write",
]
