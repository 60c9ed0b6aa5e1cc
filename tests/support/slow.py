"""Modules of unit tests that take more than two seconds of CPU, which `make test-fast` leaves out.

To find them: ``python -m pytest tests/unit --durations=100``. A missing module only costs time; a
single test can be marked ``slow`` itself.
"""

from __future__ import annotations

#: Names of the modules, without ``test_`` and ``.py``.
SLOW = frozenset(
    {
        "architecture", "attributes", "bench", "catalogs",
        "clean_up_crashes", "clean_up_handlers", "cli_deployed", "cli_events", "cli_query",
        "cli_scan", "cli_table", "cli_typed", "copied_slices", "crashes", "deep_json",
        "delivered_again", "discover_partitioning", "event_handlers", "every_order",
        "gets_surroundings", "handlers",
        "log_identity", "maintenance_killed", "make", "many_gets",
        "odd_answers", "past_columns", "place", "properties", "readahead", "resumed_discovery",
        "runner", "s3_answers", "s3_bodies", "s3_deletes", "s3_routes", "s3_retries",
        "scan_commands", "sessions", "set_aside", "standalone", "superseded", "table_accept",
        "table_contents", "table_dates", "table_features", "table_partitions",
        "table_ways_back", "tables_left_alone", "type_check", "unusual_sources",
    }
)  # fmt: skip
