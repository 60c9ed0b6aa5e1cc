"""Headless Chromium, to check the pages that this project generates."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from compactor_dev import REPOSITORY

#: Names of the programs; Debian's packages are chromium and chromium-driver.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVER = "chromedriver"
_AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def missing() -> str:
    """Return what is missing to run a browser, in one line; empty if nothing."""
    if not any(map(shutil.which, _BROWSERS)):
        return "no Chromium: apt-get install chromium chromium-driver"
    if not shutil.which(_DRIVER):
        return "no driver for Chromium: apt-get install chromium-driver"
    return "" if _AXE.is_file() else "no axe-core: npm ci"


class Browser:
    """A browser window."""

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def show(self, page: Path, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Load a local page.

        Args:
            page: its file.
            width: of the window's content, in CSS pixels.
            height: height of it.
            scheme: the preferred colour scheme, ``light`` or ``dark``.
        """
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", size)
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", {"media": "screen", "features": wanted})
        self._driver.get(page.resolve().as_uri())

    def print_media(self) -> None:
        """Lay the page out as for a printer."""
        self._command("Emulation.setEmulatedMedia", {"media": "print"})

    def open_all(self) -> None:
        """Open all collapsed sections."""
        self.ask("document.querySelectorAll('details').forEach(one => { one.open = true })")

    def ask(self, script: str) -> Any:
        """Return the result of a line of JavaScript in the page."""
        return self._driver.execute_script(script)

    def console(self) -> list[str]:
        """Return the console messages since the last call."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def violations(self) -> list[str]:
        """Return the findings of axe-core, one line per element, including undecided ones."""
        self._driver.execute_script(_AXE.read_text("utf-8"))
        found = self._driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {runOnly: {type: 'tag', values: arguments[0]}}).then(done)",
            _RULES,
        )
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}"
            for kind in ("violations", "incomplete")
            for one in found[kind]
            for node in one["nodes"]
        ]

    def picture(self, file: Path, height: int | None = None, *, scale: float = 1.0) -> None:
        """Save the page as a PNG.

        Args:
            file: overwritten.
            height: height from the top, in CSS pixels; None for the whole page.
            scale: image pixels per CSS pixel.
        """
        shown = self.ask("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": shown[0], "height": min(height or shown[1], shown[1])}
        answer = self._command(
            "Page.captureScreenshot",
            {"format": "png", "captureBeyondViewport": True, "clip": {**clip, "scale": scale}},
        )
        file.write_bytes(base64.b64decode(answer["data"]))

    def _command(self, name: str, parameters: Mapping[str, Any]) -> Any:
        return self._driver.execute_cdp_cmd(name, dict(parameters))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run a browser within the block."""
    options = ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, _BROWSERS)))
    # For containers: root cannot use the sandbox, and /dev/shm is small.
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{argument}")
    # Scrollbars would reduce the width of the layout, but not of the picture.
    options.add_argument("--hide-scrollbars")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(shutil.which(_DRIVER)))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
