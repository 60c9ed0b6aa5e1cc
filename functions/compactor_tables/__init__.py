"""Maintenance of tables that others write: which files are rewritten, by whom, and what is proved.

request    what a maintenance run is asked to do (its input)
policies   the rules that say for each table, and each prefix, who may touch it and how (pure)
measures   what a table's metadata says of its files (pure)
packing    which files an engine would rewrite, and into how many (pure)
finding    which tables there are; worklist: what is written of them
planning   what is done to a table: selecting, evolved, costs, choosing (pure, but for the order)
orders     what a run wants done with one table, for whoever does it
receipts   what became of it
ending     the end of a table: outcome, history, and the table given back
lease      who works on a table now: one run; holder: by which process
athena     what Athena is asked, and what its answers mean (pure); athena_work carries it out
optimizers what Glue's optimizers are set to, and what they did
snapshots  what an Iceberg table's metadata file says; written: who touched a partition (pure)
ports      what is asked of AWS's services
looks      what was seen of a table and done to it: averages, the best of them (pure)
latency    whose run times tell how slow it is, and an estimate (pure)
due        whether it is to be maintained; advising: how often (pure)
history    its looks on S3; watching: one more look, with its decision
superseded the tag on files of a Delta table that only old versions name
undoing    which run can be undone, and the order for it
places     where a run's documents lie

Tables belong to their writers. So a run measures a table by its metadata alone, orders what pays,
for partitions that nobody writes any more, lets one engine do it, and compares the rows before and
after before it lets go of what was replaced.
"""
