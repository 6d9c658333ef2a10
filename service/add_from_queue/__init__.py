"""The function that adds the changes of an SQS queue."""
