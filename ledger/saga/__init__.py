"""Calls of several steps over several counters.

Each step is decided once for ever; in the end all count, or none.
"""
