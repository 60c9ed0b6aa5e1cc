"""Small handlers that keep the contract of the real ones and fail on demand.

What they do is written in the execution input, under ``s3_source_uri`` and friends' place:
``{"bucket", "partitions", "oversized", "batch_partitions", "delete_after", "due", "spark_engine",
"scratch", "trouble": {"<function> <path>": [step, …]}}``; ``due`` partitions have
something to clean up. Each invocation of that function for that partition takes the next step;
after the last one all is well. Every invocation leaves one line in ``scratch``, and of a batch one
for each partition.
"""
