"""The first day on AWS: tries in an account what docs/assumptions.md claims of AWS, and
leaves nothing there.

visit   a run, and its journal          clean   what it made, and how that is deleted
report  what was seen, by the page's numbers; tests/contract and tests/smoke try it, on the table of
        the run
"""
