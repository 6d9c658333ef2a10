"""Visits the lanes of the work queue."""
