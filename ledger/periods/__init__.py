"""Periods: a counter of every month, day or hour, whose name ends with it, and which retires by itself."""
