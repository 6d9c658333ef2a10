"""Sends lanes that are due to the work queue, every minute."""
