"""The account of a run, from what its partitions left behind.

report     its figures, as one document
page       the same as a page, by the templates beside it; and the page of many runs
view       what the page shows of the document; charts, sentences and remedies are parts of it
"""
