"""What requests cost, by AWS's published rules: read from what was sent and answered, not from a bill."""
