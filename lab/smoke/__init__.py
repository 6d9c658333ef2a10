"""The first day on AWS: what docs/assumptions.md takes from AWS's word, seen in an account, and nothing left there.

visit   a run, and its journal          clean   what it made, and how that goes
report  what was seen, by the page's numbers; what is asked is tests/contract and tests/smoke, on the table of the run
"""
