"""Measurements of this counter and of the naive ones: requests and units by AWS's published rules."""
