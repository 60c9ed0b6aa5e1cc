"""Access to S3. No other module talks to it."""
