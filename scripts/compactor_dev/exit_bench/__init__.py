"""``make exit-bench``: tables of many small files, maintained while a writer appends to them.

Never shipped. ``command`` starts Spark (``compactor_spark/measure_maintenance.py``) on an S3 of
this machine, and reads the table before and after with what has not written it.
"""
