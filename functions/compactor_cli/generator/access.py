"""Access logs in lines: Application Load Balancer, and S3 server access logs.

Sources of the field order: Elastic Load Balancing user guide, "Access log entries"; S3 user
guide, "Amazon S3 server access log format".
"""

from __future__ import annotations

from random import Random

from compactor_cli.generator.drawing import Draw, address, clock
from compactor_cli.generator.keys import SOURCE_BUCKET

_POOL = 2_048
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15",
    "curl/8.5.0",
    "ELB-HealthChecker/2.0",
    "aws-sdk-java/2.25.11 Linux/5.10 OpenJDK_64-Bit_Server_VM/17 cfg/retry-mode/legacy",
    "-",
)
_PATHS = ("/", "/cart", "/api/v2/orders", "/search?q=red%20shoes&page=2", "/img/logo.svg")
_CIPHER = "ECDHE-RSA-AES128-GCM-SHA256"
_CERTIFICATE = "0f5c0a9e-6c1b-4c2e-8a4d-0242ac120002"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class LoadBalancerRenderer:
    """Application Load Balancer entries with all 30 fields, some 560 bytes each."""

    separator = "\n"
    epilogue = "\n"

    def __init__(self, seed: int) -> None:
        rng = Random(f"alb:{seed}")
        self._requests = [_balanced(rng) for _ in range(_POOL)]

    def prologue(self, draw: Draw) -> str:
        """These logs have no header."""
        return ""

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Entries of the object's five minutes, in order of time."""
        rng, day, times, site = draw.rng, draw.day, clock(), draw.site
        digits = rng.randbytes(16 * rows).hex()
        balancing = f"arn:aws:elasticloadbalancing:{site.region}:{site.account}:targetgroup"
        group = f"{balancing}/shop-web/73e2d6bc24d8a067"
        certificate = f"arn:aws:acm:{site.region}:{site.account}:certificate/{_CERTIFICATE}"
        balancer = f"app/shop/{site.account[:8]}a1b2c3d4"
        pairs = zip(draw.seconds(rows), rng.choices(self._requests, k=rows), strict=True)
        records = []
        for row, (second, (scheme, head, request, target, tail)) in enumerate(pairs):
            when = f"{day}T{times[second]}.{row * 7919 % 1_000_000:06d}Z"
            d = digits[32 * row : 32 * row + 32]
            records.append(
                f"{scheme} {when} {balancer} {head} {request} {group} "
                f'"Root=1-{d[:8]}-{d[8:]}" "shop.example.com" "{certificate}" '
                f'1 {when} "forward" "-" "-" {target} {tail} TID_{d[16:]}'
            )
        return records


class BucketAccessRenderer:
    """S3 server access log entries, some 430 bytes each."""

    separator = "\n"
    epilogue = "\n"

    def __init__(self, seed: int) -> None:
        rng = Random(f"access:{seed}")
        self._owner = rng.randbytes(32).hex()
        self._requests = [_requested(rng) for _ in range(_POOL)]

    def prologue(self, draw: Draw) -> str:
        """These logs have no header."""
        return ""

    def records(self, draw: Draw, rows: int) -> list[str]:
        """Entries of the object's five minutes, in order of time."""
        rng, times, owner, region = draw.rng, clock(), self._owner, draw.site.region
        digits = rng.randbytes(40 * rows).hex().upper()
        year, month, day = draw.day.split("-")
        stamp = f"{day}/{_MONTHS[int(month) - 1]}/{year}"
        pairs = zip(draw.seconds(rows), rng.choices(self._requests, k=rows), strict=True)
        records = []
        for row, (second, (remote, request, agent)) in enumerate(pairs):
            d = digits[80 * row : 80 * row + 80]
            records.append(
                f"{owner} {SOURCE_BUCKET} [{stamp}:{times[second]} +0000] {remote} {owner} "
                f'{d[:16]} {request} "-" "{agent}" - {d[16:]}= SigV4 {_CIPHER} AuthHeader '
                f"{SOURCE_BUCKET}.s3.{region}.amazonaws.com TLSv1.2 - - {region}"
            )
        return records


def _balanced(rng: Random) -> tuple[str, str, str, str, str]:
    secure = rng.random() < 0.9
    status = rng.choice((200, 200, 200, 200, 304, 404, 500, 502))
    target = f"10.0.{rng.randrange(4)}.{rng.randrange(10, 250)}:8080"
    seconds = " ".join(f"{rng.expovariate(40):.3f}" for _ in range(3))
    sizes = f"{rng.randrange(60, 4_000)} {rng.randrange(200, 80_000)}"
    url = f"{'https' if secure else 'http'}://shop.example.com:{443 if secure else 80}"
    client = f"{address(rng)}:{rng.randrange(1_024, 65_536)}"
    return (
        "h2" if secure else "http",
        f"{client} {target} {seconds} {status} {status} {sizes}",
        f'"{rng.choice(("GET", "GET", "POST"))} {url}{rng.choice(_PATHS)} HTTP/1.1" '
        f'"{rng.choice(_AGENTS)}" ' + (f"{_CIPHER} TLSv1.2" if secure else "- -"),
        f'"{target}" "{status}"',
        '"-" "-"',
    )


def _requested(rng: Random) -> tuple[str, str, str]:
    key = f"img/{rng.randrange(10**4):04d}/product%2B{rng.randrange(10**6)}.jpg"
    size = rng.randrange(500, 500_000)
    kind = rng.choice(("GET", "GET", "GET", "HEAD", "PUT"))
    status, error = (404, "NoSuchKey") if rng.random() < 0.05 else (200, "-")
    sent = f"{size if kind == 'GET' else '-'} {size}" if status == 200 else "243 -"
    took = rng.randrange(2, 300)
    request = (
        f'REST.{kind}.OBJECT {key} "{kind} /{SOURCE_BUCKET}/{key} HTTP/1.1" '
        f"{status} {error} {sent} {took} {max(1, took - rng.randrange(20))}"
    )
    return address(rng), request, rng.choice(_AGENTS)
