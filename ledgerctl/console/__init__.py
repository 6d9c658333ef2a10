"""`ledgerctl console`: a page that shows counters. The command is in `command.py`."""
