"""Periods: a counter for each month, day or hour, whose name ends with it and whose items retire
by themselves.
"""
