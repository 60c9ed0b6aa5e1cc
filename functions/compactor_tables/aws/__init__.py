"""AWS services that only maintenance uses: Glue's catalog, Athena, run times."""
