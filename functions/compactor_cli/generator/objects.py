"""Turns a spec into objects, one at a time, in the order of their events."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random

from compactor_cli.generator.access import BucketAccessRenderer, LoadBalancerRenderer
from compactor_cli.generator.arrivals import Arrivals, delay_seconds
from compactor_cli.generator.drawing import Draw, Renderer, sites
from compactor_cli.generator.events import EventRenderer
from compactor_cli.generator.keys import KeyNames
from compactor_cli.generator.network import FlowRenderer
from compactor_cli.generator.orders import OrderRenderer
from compactor_cli.generator.spec import CompressionChoice, GeneratorSpec, LogFormat
from compactor_cli.generator.trail import TrailRenderer

# Level 6 is what real writers use; a faster level would make the compactor's output look better.
_GZIP_LEVEL = 6
# wbits 31 is zlib's gzip container, whose header has no timestamp.
_GZIP_CONTAINER = 31
_TWO_MEMBERS_RATE = 0.1
_LONGEST_SIGMAS = 4.0
_OBJECTS_A_SEED = 2**32

_NATIVELY_GZIP = frozenset({LogFormat.CLOUDTRAIL, LogFormat.ALB, LogFormat.VPC})
_APPENDED_GZIP = frozenset({LogFormat.JSON, LogFormat.UNDELIMITED})
_HEADER_ALONE = frozenset({LogFormat.CSV, LogFormat.VPC})


@dataclass(frozen=True, slots=True)
class GeneratedObject:
    """One object.

    Attributes:
        key: relative to the output URI.
        content: the stored bytes, perhaps compressed.
        last_modified: UNIX seconds, whole; kept in a local directory; S3 sets its own.
        records: number of records in it; 0 for an empty one.
    """

    key: str
    content: bytes
    last_modified: float
    records: int


def generate(spec: GeneratorSpec) -> Iterator[GeneratedObject]:
    """The objects of a spec, lazily and in constant memory, in the order of their events.

    Every object depends only on the spec and its number. Among the gzip objects of the json and
    undelimited formats one in ten has two members, as appending writers produce. Empty objects have
    zero bytes, except that an empty CloudTrail object is a document without records, and half of
    the empty csv and vpc objects hold the header line.
    """
    workshop = _Workshop(spec)
    return (workshop.make(index) for index in range(spec.objects))


class _Workshop:
    """State shared by all objects of a spec."""

    def __init__(self, spec: GeneratorSpec) -> None:
        self._spec = spec
        self._arrivals = Arrivals(spec)
        self._sites = sites(spec)
        self._keys = KeyNames(spec.date_format, several_formats=len(spec.formats) > 1)
        self._renderers = {one: _RENDERERS[one](spec.seed) for one in spec.formats}
        self._mu = math.log(spec.rows) - spec.size_sigma**2 / 2
        self._longest = math.exp(self._mu + _LONGEST_SIGMAS * spec.size_sigma)

    def make(self, index: int) -> GeneratedObject:
        """Return the object with this number."""
        spec = self._spec
        rng = Random(spec.seed * _OBJECTS_A_SEED + index)
        log_format = spec.formats[index % len(spec.formats)]
        draw = self._draw(rng, index)
        gzip = self._gzipped(log_format, rng)
        empty = rng.random() < spec.empty_rate
        late = rng.random() < spec.late_rate
        rows = 0 if empty else self._rows(rng)
        content = self._content(log_format, draw, rows)
        if gzip and content:
            content = _gzip(content, self._members(log_format, rng))
        return GeneratedObject(
            key=self._keys.name(log_format, draw, gzip=gzip),
            content=content,
            last_modified=draw.event_time + delay_seconds(rng, late=late),
            records=rows,
        )

    def _draw(self, rng: Random, index: int) -> Draw:
        share = (index + rng.random()) / self._spec.objects
        event_time = self._arrivals.at(min(share, math.nextafter(1.0, 0.0)))
        day = datetime.fromtimestamp(event_time, UTC).strftime("%Y-%m-%d")
        return Draw(rng, index, share, event_time, day, rng.choice(self._sites))

    def _rows(self, rng: Random) -> int:
        drawn = rng.lognormvariate(self._mu, self._spec.size_sigma)
        return max(1, round(min(drawn, self._longest)))

    def _gzipped(self, log_format: LogFormat, rng: Random) -> bool:
        coin = rng.random() < 0.5
        match self._spec.compression:
            case CompressionChoice.NATIVE:
                return log_format in _NATIVELY_GZIP
            case CompressionChoice.MIXED:
                return coin
            case choice:
                return choice is CompressionChoice.GZIP

    def _members(self, log_format: LogFormat, rng: Random) -> int:
        appended = rng.random() < _TWO_MEMBERS_RATE
        return 2 if appended and log_format in _APPENDED_GZIP else 1

    def _content(self, log_format: LogFormat, draw: Draw, rows: int) -> bytes:
        renderer = self._renderers[log_format]
        if rows == 0:
            return _empty(log_format, renderer, draw)
        epilogue = renderer.epilogue
        if epilogue == "\n" and draw.rng.random() < self._spec.missing_newline_rate:
            epilogue = ""
        text = renderer.separator.join(renderer.records(draw, rows))
        return (renderer.prologue(draw) + text + epilogue).encode()


def _empty(log_format: LogFormat, renderer: Renderer, draw: Draw) -> bytes:
    if log_format is LogFormat.CLOUDTRAIL:
        return (renderer.prologue(draw) + renderer.epilogue).encode()
    if log_format in _HEADER_ALONE and draw.rng.random() < 0.5:
        return renderer.prologue(draw).encode()
    return b""


def _gzip(content: bytes, members: int) -> bytes:
    middle = len(content) // 2 if members == 2 else 0
    pieces = (content[:middle], content[middle:]) if middle else (content,)
    return b"".join(zlib.compress(piece, _GZIP_LEVEL, _GZIP_CONTAINER) for piece in pieces)


_RENDERERS: dict[LogFormat, Callable[[int], Renderer]] = {
    LogFormat.JSON: partial(EventRenderer, delimited=True),
    LogFormat.UNDELIMITED: partial(EventRenderer, delimited=False),
    LogFormat.CSV: OrderRenderer,
    LogFormat.CLOUDTRAIL: TrailRenderer,
    LogFormat.ALB: LoadBalancerRenderer,
    LogFormat.VPC: FlowRenderer,
    LogFormat.TEXT: BucketAccessRenderer,
}
