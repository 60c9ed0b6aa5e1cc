"""What runs on other machines, built without Docker: bundles of packages, and Spark's jars."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
