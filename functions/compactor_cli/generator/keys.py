"""Key names as the real systems form them, relative to the output URI.

Sources: the CloudTrail, Elastic Load Balancing, VPC flow logs, S3 server access logs and
Data Firehose user guides, pages on object names; for CloudTrail also real objects.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from compactor_cli.generator.drawing import Draw
from compactor_cli.generator.spec import LogFormat

SOURCE_BUCKET = "shop-assets"
STREAM = "clickstream"

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"
_HEXADECIMAL = "0123456789ABCDEF"


def unique_hex(index: int) -> str:
    """Return eight hex digits that look random and differ for every index below 2**32.

    Multiplication by an odd number is one-to-one modulo a power of two.
    """
    return f"{(index * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF:08x}"


class KeyNames:
    """Names objects.

    With a single format, the partitions of json, csv and undelimited are directly below the
    output URI; with several, each is below its own segment (``events/``, ``orders/``,
    ``clickstream/``), so that a partition holds one data set, as in real data lakes.
    """

    def __init__(self, date_format: str, *, several_formats: bool) -> None:
        self._date_format = date_format
        self._several = several_formats

    def name(self, log_format: LogFormat, draw: Draw, *, gzip: bool) -> str:
        """The key of one object."""
        when = datetime.fromtimestamp(draw.event_time, UTC)
        below = when.strftime(self._date_format) + "/"
        root, last = _NAMERS[log_format](draw, when)
        if log_format in _DATA_SETS and not self._several:
            root = ""
        return root + below + last + _SUFFIXES[log_format][gzip]


_DATA_SETS = frozenset({LogFormat.JSON, LogFormat.CSV, LogFormat.UNDELIMITED})

# Plain and gzip. S3 access logs never have a suffix.
_SUFFIXES = {
    LogFormat.JSON: (".json", ".json.gz"),
    LogFormat.CSV: (".csv", ".csv.gz"),
    LogFormat.CLOUDTRAIL: (".json", ".json.gz"),
    LogFormat.ALB: (".log", ".log.gz"),
    LogFormat.VPC: (".log", ".log.gz"),
    LogFormat.TEXT: ("", ""),
    LogFormat.UNDELIMITED: ("", ".gz"),
}


def _delivered(when: datetime) -> str:
    """The five-minute stamp of services that deliver every five minutes."""
    return when.replace(minute=when.minute // 5 * 5).strftime("%Y%m%dT%H%MZ")


def _drawn(rng: Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def _events(draw: Draw, when: datetime) -> tuple[str, str]:
    return "events/", f"events-{when:%Y%m%dT%H%M%SZ}-{unique_hex(draw.index)}"


def _orders(draw: Draw, when: datetime) -> tuple[str, str]:
    return "orders/", f"orders_{when:%Y%m%d_%H%M%S}_{unique_hex(draw.index)}"


def _cloudtrail(draw: Draw, when: datetime) -> tuple[str, str]:
    site = draw.site
    root = f"AWSLogs/{site.account}/CloudTrail/{site.region}/"
    stem = f"{site.account}_CloudTrail_{site.region}_{_delivered(when)}"
    return root, f"{stem}_{_drawn(draw.rng, _LETTERS, 16)}"


def _alb(draw: Draw, when: datetime) -> tuple[str, str]:
    site = draw.site
    root = f"AWSLogs/{site.account}/elasticloadbalancing/{site.region}/"
    stem = f"{site.account}_elasticloadbalancing_{site.region}_app.shop.{site.account[:8]}a1b2c3d4"
    node = f"10.0.{draw.index % 3}.{11 + draw.index % 7}"
    return root, f"{stem}_{_delivered(when)}_{node}_{_drawn(draw.rng, _LOWER, 8)}"


def _vpc(draw: Draw, when: datetime) -> tuple[str, str]:
    site = draw.site
    root = f"AWSLogs/{site.account}/vpcflowlogs/{site.region}/"
    stem = f"{site.account}_vpcflowlogs_{site.region}_fl-0{site.account}abcd"
    return root, f"{stem}_{_delivered(when)}_{unique_hex(draw.index)}"


def _access(draw: Draw, when: datetime) -> tuple[str, str]:
    site = draw.site
    root = f"{site.account}/{site.region}/{SOURCE_BUCKET}/"
    return root, f"{when:%Y-%m-%d-%H-%M-%S}-{_drawn(draw.rng, _HEXADECIMAL, 16)}"


def _firehose(draw: Draw, when: datetime) -> tuple[str, str]:
    tail = draw.rng.randbytes(12).hex()
    uuid = f"{unique_hex(draw.index)}-{tail[:4]}-4{tail[5:8]}-a{tail[9:12]}-{tail[12:]}"
    return f"{STREAM}/", f"{STREAM}-1-{when:%Y-%m-%d-%H-%M-%S}-{uuid}"


_NAMERS: dict[LogFormat, Callable[[Draw, datetime], tuple[str, str]]] = {
    LogFormat.JSON: _events,
    LogFormat.CSV: _orders,
    LogFormat.CLOUDTRAIL: _cloudtrail,
    LogFormat.ALB: _alb,
    LogFormat.VPC: _vpc,
    LogFormat.TEXT: _access,
    LogFormat.UNDELIMITED: _firehose,
}
