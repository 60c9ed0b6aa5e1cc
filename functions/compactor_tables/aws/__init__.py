"""AWS services that only maintenance uses: Glue tables and optimizers, Athena, run times."""
