"""Lanes without a limit: `add` puts changes, `tail` reads them, `directory` lists lanes; `shape`
checks the table's.
"""
