"""What query engines read: one table over sources and outputs, in which each record is once.

``states`` decides what a partition of the table shows, ``refresh`` lets the catalog say so, and
``gate`` keeps clean-up from what the catalog still names. ``partitions``, ``columns``, ``formats``
and ``making`` say what the table is; ``ddl`` and ``files`` tell it to engines without the catalog.
"""
