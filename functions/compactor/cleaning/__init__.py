"""Clean-up: deletes the sources of a commit once retention has passed, and nothing else.

clean_partition    one partition's clean-up in one worker: the order of its steps
clean_up_list      which partitions have something to clean up, and their list on S3; replaced
                   checkpoints
due                decides about each entry of a log
decide             what may be deleted: the sources of one commit, by key and ETag
output_proof       proves that an output is what its commit says
deletions          what was deleted so far, by records and receipts
clean_up_records   one record for each commit that clean-up has finished
clean_up_receipts  what was done in one partition; clean_up_report: the sum of all partitions
orphans            uploads that can no longer be published
"""
