"""The account of a run, from the receipts of its partitions.

report     its figures, as one document
page       the same as a page, by the templates beside it; and the page of many runs
view       what the page shows of the document; charts, sentences, remedies and spent are parts
cost       what the run cost, by what it counted
idle_reasons    why a run did nothing, and the way out
explain    the verb: what is known of one key; object_status, source_status: of an output, a source
skipped    of each reason to leave an object, what is so and what to do
"""
