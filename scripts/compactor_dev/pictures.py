"""Generates docs/pictures/: screens and pages of a real run. ``make pictures``.

Screens run in order, each on the lake that the previous ones left.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image

from compactor_cli.generator import GeneratorSpec, LogFormat, generate
from compactor_dev import REPOSITORY
from compactor_dev.browser import Browser, missing, open_browser
from compactor_dev.terminal import as_svg, run_in_terminal
from compactor_local.embedded import EmbeddedS3, SeedObject, embedded_s3, in_environment

PICTURES = REPOSITORY / "docs" / "pictures"
#: Maximum bytes of a committed picture.
MOST_BYTES = 200_000
_COLOURS = 160
_DAYS = 6
_FORMATS = (LogFormat.JSON, LogFormat.ALB, LogFormat.CLOUDTRAIL, LogFormat.TEXT)
_SOURCE, _LAKE = "s3://my-logs/raw/*/", "s3://my-lake/compacted/"
_DATED = ("--date-format", "%Y/%m/%d")
_DATE = re.compile(r".*?(?=\d{4}/\d\d/\d\d/)")
_WIDE, _TELEPHONE = 1_000, 390


@dataclass(frozen=True, slots=True)
class Screen:
    """A command and its output in a terminal.

    Attributes:
        name: of the picture.
        words: arguments of ``compactor``; ``{pages}`` is replaced by a directory.
        most_lines: maximum lines in the picture.
    """

    name: str
    words: Sequence[str]
    most_lines: int = 60


@dataclass(frozen=True, slots=True)
class Shot:
    """A page in a browser.

    Attributes:
        name: of the picture.
        page: file that a screen wrote to ``{pages}``.
        width, height: of the window, and of the captured part of the page, in CSS pixels.
    """

    name: str
    page: str
    width: int = _WIDE
    height: int = 1_500
    scheme: str = "light"


SCREENS = (
    Screen("scan", ("scan", "s3://my-logs/raw/", _LAKE)),
    Screen("plan", ("plan", _SOURCE, _LAKE, *_DATED, "--duration", "20")),
    Screen("run", ("run", _SOURCE, _LAKE, *_DATED, "--duration", "20", "--report-dir", "{pages}")),
    Screen("history", ("history", "s3://my-lake/daily/")),
)
SHOTS = (
    Shot("report-light", "report.html"),
    Shot("report-dark", "report.html", scheme="dark"),
    Shot("report-390", "report.html", _TELEPHONE, 1_700),
)


def sown(today: datetime) -> Iterator[SeedObject]:
    """Yield logs of some days and formats, one other file, and a few late objects."""
    start = today - timedelta(days=_DAYS + 1)
    spec = GeneratorSpec(
        objects=6_000, rows=25, formats=_FORMATS, start=start.date(), days=_DAYS, late_rate=0
    )
    for number, one in enumerate(generate(spec)):
        key = _DATE.sub(f"raw/{_FORMATS[number % len(_FORMATS)].value}/", one.key, count=1)
        yield SeedObject(key, one.content, one.last_modified)
    first = f"raw/json/{start:%Y/%m/%d}"
    yield SeedObject(f"{first}/core.dump", b"\x7fELF" + bytes(2_000), start.timestamp() + 7_200)
    last = f"raw/json/{start + timedelta(days=_DAYS - 1):%Y/%m/%d}"
    for number in range(40):
        body = b'{"level": "info", "message": "sent late"}\n'
        yield SeedObject(f"{last}/late-{number:03}.json", body, today.timestamp())


def _run_daily(today: datetime) -> None:
    """Run once per day, as a schedule would."""
    for number in range(_DAYS):
        day = f"{today - timedelta(days=_DAYS + 1 - number):%Y-%m-%d}"
        window = ("--start", day, "--end", day)
        run_in_terminal(("run", _SOURCE, "s3://my-lake/daily/", *_DATED, *window))


def _make_all(server: EmbeddedS3, browser: Browser, scratch: Path) -> None:
    today = datetime.now(UTC)
    server.seed("my-logs", sown(today))
    server.create_bucket("my-lake")
    _run_daily(today)
    for screen in SCREENS:
        words = [word.replace("{pages}", str(scratch)) for word in screen.words]
        written = run_in_terminal(words)
        shown = written.replace(str(scratch), "reports")
        typed = [word.replace("{pages}", "reports") for word in screen.words]
        lines = "\n".join(shown.splitlines()[: screen.most_lines])
        (PICTURES / f"{screen.name}.svg").write_text(as_svg(typed, lines), "utf-8")
    for shot in SHOTS:
        page = scratch / f"{shot.page.removesuffix('.html')}.shot.html"
        shutil.copy(scratch / shot.page, page)
        browser.show(page, width=shot.width, scheme=shot.scheme)
        _take(browser, shot.name, shot.height)


def _take(browser: Browser, name: str, height: int) -> None:
    """Save a picture with few colours, to keep the file small."""
    file = PICTURES / f"{name}.png"
    browser.picture(file, height, scale=1.5)
    with Image.open(file) as taken:
        few = taken.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(file, optimize=True)
    print(f"{file.relative_to(REPOSITORY)}: {file.stat().st_size:,} bytes")


def main() -> int:
    """Generate all pictures; returns the exit code."""
    if lacking := missing():
        print(f"pictures: {lacking}", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        embedded_s3() as server,
        in_environment(server.environment),
        open_browser() as browser,
    ):
        _make_all(server, browser, Path(scratch))
    too_large = [one.name for one in PICTURES.iterdir() if one.stat().st_size > MOST_BYTES]
    if too_large:
        print(f"pictures: more than {MOST_BYTES:,} bytes: {', '.join(too_large)}", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
