"""Rows: turns the records of a group, or its Parquet objects, into one Parquet output, in Arrow.

The same code runs in a worker and in a Spark task, so both write the same bytes. It is imported
only by runs whose outputs hold rows, as pyarrow takes a third of a second to import.
"""

import pyarrow as pa

# Its own allocator keeps what was freed: 20,000 small sources take 235 MB with it instead of 190, a
# gigabyte of nested lists 555 MB instead of 445, and neither takes more CPU time without it.
pa.set_memory_pool(pa.system_memory_pool())
