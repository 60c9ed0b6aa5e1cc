"""Reports as local HTML files, and opening them in the browser."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor.report.page import render
from compactor_cli.console import print_note


def require_directory(option: str, directory: Path) -> None:
    """Create a directory if needed, and check that it is writable.

    Raises:
        InvalidInput: it is not writable.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, ValueError) as error:
        accepted = f"a writable directory ({error})"
        raise InvalidInput(option, str(directory), accepted) from None


def leave_report(document: Mapping[str, Any], directory: Path) -> list[Path]:
    """Write a report as HTML and as JSON; returns both files.

    Raises:
        OSError: the directory is not writable.
    """
    page, body = directory / "report.html", directory / "report.json"
    page.write_text(render(document), "utf-8")
    body.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return [page, body]


def keep_page(page: str, name: str, wanted: Path | None) -> Path:
    """Write a page to the wanted file, or to a temporary one; returns the file.

    Raises:
        InvalidInput: the file is not writable.
    """
    if wanted is None:
        wanted = Path(tempfile.mkdtemp(prefix="s3-compactor-")) / name
    try:
        wanted.write_text(page, "utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput("--html", str(wanted), f"a writable file ({error})") from None
    return wanted


def open_page(file: Path) -> None:
    """Open a page in the browser; print its path where there is no browser."""
    if not webbrowser.open(file.resolve().as_uri()):
        print_note(f"compactor: found no browser; the page is {file}")
