"""The only modules that talk to S3."""
