"""AWS services that only maintenance uses: Glue's catalog and Athena."""
