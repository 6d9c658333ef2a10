"""`ledgerctl`, the command line of the counters: a file for each command or two (`import` is
imports.py).

Rule 1: Files of their own have what several commands share; only `restore` takes its last steps
from `init`, and `revert` sends as `add` does.
Rule 2: `app` lists the commands, `call` is one call of the program (options, table, printing),
`command` makes a function a command, `failures` says what a failure means.
"""
