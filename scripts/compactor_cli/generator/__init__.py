"""Realistic, seeded, reproducible log objects to try the compactor on.

    spec      what to generate, checked
    arrivals  when objects arrive: days, hours, bursts, late ones
    drawing   the random draws of one object, and the sites it may come from
    keys      the key names real systems give
    events, orders, network, access, trail     the records of each format
    objects   generate(spec) -> GeneratedObject, one after the other
    output    write(objects, output_uri), many at a time
    destinations, put_client    below an S3 prefix or a local directory
    command   the options and the run of ``compactor generate``

The same spec gives the same keys and the same plain bytes on every machine. The bytes of
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
