"""Sends every lane of the directory to the work queue, once a day."""
