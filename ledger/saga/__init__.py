"""Calls of several steps over several counters, each step decided once for ever: all or none, in the end."""
