"""How large a number may be: part of the formats for ever, on the ground floor, so that every file may know it."""

CHANGE_MAX = 10**18
"""No change is larger, so that a total of 10^20 changes fits DynamoDB's 38 digits, and a change fits 64 bits."""

SHARD_MAX = 999_999
"""No lane's shard is larger; settings allow fewer, so that a read asks each of them."""

VERSION_MAX = 10**10 - 1
"""The ten digits that a segment's sort key has for it: 300 years of a commit a second."""

COUNT_MAX = 10**20 - 1
"""No lane counts more changes, so that its total fits 38 digits."""
