"""How large numbers may be.

They are part of the formats for ever; this file imports nothing, so any may import it.
"""

CHANGE_MAX = 10**18
"""The largest change, so that a total of 10^20 changes fits DynamoDB's 38 digits, and a change
fits 64 bits.
"""

SHARD_MAX = 999_999
"""The largest shard of a lane; settings allow fewer, because a read goes to each of them."""

VERSION_MAX = 10**10 - 1
"""A segment's sort key has ten digits for the version: 300 years of a commit a second."""

COUNT_MAX = 10**20 - 1
"""The most changes that a lane counts, so that its total fits 38 digits."""
