"""The report of a run, from the receipts of its partitions.

report        the figures of a run, as one document
page          the same as an HTML page, from the templates
view          what the page shows; charts, sentences and remedies are parts of it
next_steps    what to do after a run
cost          what the run cost, from its own counts
run_history   the last runs, for the trend
idle_reasons  why a run did nothing, and what to do
explain       the command: what is known about a key; object_status, source_status: its two cases
skipped       for each skip reason, the explanation and what to do
"""
