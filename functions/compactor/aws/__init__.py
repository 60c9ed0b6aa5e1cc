"""AWS services other than S3: DynamoDB, Glue, Step Functions, S3 Tables."""
