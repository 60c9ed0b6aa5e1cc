"""Development tools, which are not shipped: benchmark, image, tables of docs/."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

IMPORT_ROOTS = tuple(str(REPOSITORY / name) for name in ("functions", "scripts", "spark", "."))
"""Entries of ``PYTHONPATH`` for importing everything."""
