# /// script
# requires-python = ">=3.11"
# dependencies = ["duckdb==1.5.5", "duckdb-extension-httpfs==1.5.5"]
# ///
"""DuckDB over objects: ``uv run --script reader.py PATTERN THREADS`` (0 threads: its default).

Runs with libraries of its own: the extension that reads S3 is a wheel of this version alone. The
measured time excludes starting the engine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path

import duckdb

_QUERY = (
    "SELECT service, count(*), count_if(level = 'ERROR'), max(duration_ms) FROM {}"
    " GROUP BY service ORDER BY service"
)
_COLUMNS = "{level: 'VARCHAR', service: 'VARCHAR', duration_ms: 'DOUBLE'}"


def main() -> None:
    """Answer the query; the result has its rows and seconds."""
    pattern, threads = sys.argv[1:]
    source = f"read_json('{pattern}', format = 'newline_delimited', columns = {_COLUMNS})"
    if pattern.endswith(".parquet"):
        source = f"read_parquet('{pattern}')"
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{_extension()}'")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{os.environ['AWS_ACCESS_KEY_ID']}',"
            f" SECRET '{os.environ['AWS_SECRET_ACCESS_KEY']}',"
            f" REGION '{os.environ['AWS_REGION']}', URL_STYLE 'path', USE_SSL false,"
            f" ENDPOINT '{os.environ['AWS_ENDPOINT_URL_S3'].removeprefix('http://')}')"
        )
        if int(threads):
            connection.execute(f"SET threads = {threads}")
        started = time.monotonic()
        rows = connection.execute(_QUERY.format(source)).fetchall()
        seconds = time.monotonic() - started
    print(json.dumps({"rows": rows, "seconds": seconds}))


def _extension() -> Path:
    package = Path(str(import_module("duckdb_extension_httpfs").__file__)).parent
    return package / "extensions" / f"v{duckdb.__version__}" / "httpfs.duckdb_extension"


if __name__ == "__main__":
    main()
