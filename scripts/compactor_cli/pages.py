"""Pages on this machine: written to a file, and opened in the user's browser."""

from __future__ import annotations

import json
import tempfile
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor.report.page import render
from compactor_cli.console import print_error


def require_directory(option: str, directory: Path) -> None:
    """Make a directory that does not exist yet, before anything else is done.

    Raises:
        InvalidInput: nothing can be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, ValueError) as error:
        accepted = f"a directory that can be written ({error})"
        raise InvalidInput(option, str(directory), accepted) from None


def leave_report(document: Mapping[str, Any], directory: Path) -> list[Path]:
    """Write a report as a page and as a document; returns both files.

    Raises:
        OSError: nothing can be written there.
    """
    page, body = directory / "report.html", directory / "report.json"
    page.write_text(render(document), "utf-8")
    body.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return [page, body]


def keep_page(page: str, name: str, wanted: Path | None) -> Path:
    """Write a page to the file that is wanted, or to one of its own for temporary files.

    Raises:
        InvalidInput: nothing can be written there.
    """
    if wanted is None:
        wanted = Path(tempfile.mkdtemp(prefix="s3-compactor-")) / name
    try:
        wanted.write_text(page, "utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput("--html", str(wanted), f"a file that can be written ({error})") from None
    return wanted


def open_page(file: Path) -> None:
    """Show it in the browser of this machine; where there is none, say which file it is."""
    if not webbrowser.open(file.resolve().as_uri()):
        print_error(f"compactor: no browser found here; the page is {file}")
