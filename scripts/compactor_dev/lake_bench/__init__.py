"""``make lake-bench``: small Parquet objects into one Iceberg table, several ways, the same faults.

Never shipped. ``trips`` makes the objects; ``sketch`` is the way that is often described: an event
becomes an item with an id of its own, a worker scans what is pending, appends the rows to the
table, again when the commit conflicts, and marks the items. ``ours`` is this project's, and
``one_run`` a run of it that can be killed. ``command`` lets all run and counts.
"""
