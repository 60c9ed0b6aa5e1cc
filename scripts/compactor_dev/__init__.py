"""Tools of this checkout, never shipped: benchmark, bundles, locks, pictures, documents."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

IMPORT_ROOTS = tuple(str(REPOSITORY / name) for name in ("functions", "scripts", "spark", "."))
"""What has to be on ``PYTHONPATH`` to import everything."""
