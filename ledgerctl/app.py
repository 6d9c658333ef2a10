"""The program: every command, in the order in which help lists them."""

# ruff: noqa: F401, I001 -- each adds its commands, in this order
from ledgerctl import (
    init as tables,
    add as changes,
    get as values,
    standing,
    hold,
    ends,
    limit,
    history,
    list as counters,
    adopt,
    lag,
    compact as compaction,
    rebuild,
    restore,
    redrive,
    imports,
    cost,
    doctor,
)
from ledgerctl.command import app

__all__ = ["app"]
