"""The report of a run, from the receipts of its partitions.

report          the figures of a run, as one document
reasons         for each reason to leave an object alone, and each error: a sentence and what to do
text            the document as text; rendering: tables for terminals and notebooks
page            the document as an HTML page; charts: its two charts
cost            what the run cost, from its own counts
run_history     the last runs, for the trend
source_status   the explain command: what is known about a key; object_status: about an output
"""
