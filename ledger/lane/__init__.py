"""Lanes without a limit: a change is put (`add`), read (`tail`), and found (`directory`); `shape` is the table's."""
