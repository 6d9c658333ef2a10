"""What the service promises, judged when its streams and queues are empty.

Rule 1: It knows the rules and not the code: who rings is worked out here, too.
Rule 2: A lane that has a record is in the directory.
Rule 3: No entry at or below a watermark is listed nowhere.
Rule 4: A ringing item stands for what came before it, up to its own time or that of its record, whichever is later.
Of what any stands for less than fold_min is in the tail, unless a message was dropped that only folds. After a sweep,
because messages were lost, less than fold_min is in the tail at all.
"""

import hashlib

from lab.histories.served_world import Record, ServedWorld
from ledger import items, tokens
from ledger.entries import time_ms
from ledger.lane import directory
from ledger.requests import Key
from ledger.settings import Settings
from ledger.values import Lane

ROUNDED_MS = 999


def served(world: ServedWorld, settings: Settings, swept: bool, *, dropped: bool = False) -> list[str]:
    """What is not as it was promised. swept: of all lanes, since. dropped: a message that only folds was."""
    wrong: list[str] = []
    for region in world.regions:
        replica = world.replicas[region]
        arrived: dict[Lane, list[Record]] = {}
        for record in world.posts[region].records:
            found = items.lane_of(record.key.pk)
            if found is not None and found[0] == "delta" and found[1].region == region:
                arrived.setdefault(found[1], []).append(record)
        for lane, records in arrived.items():
            if replica.item(directory.key_of(lane)) is None:
                wrong.append(f"{lane} is not in the directory")
            checkpoint = replica.item(items.checkpoint_key(lane))
            watermark = items.checkpoint_of(lane, checkpoint).watermark if checkpoint else ""
            upto = tokens.to_bytes(watermark) if watermark else b""
            keys = [record.key for record in records]
            held = {key: items.entries_of(lane, item).tokens for key in keys if (item := replica.item(key)) is not None}
            below = {token for some in held.values() for token in some if token <= upto}
            if left := below - _listed(world, lane):
                wrong.append(f"{lane}: {len(left)} strays that nobody will settle")
            tail: set[bytes] = set()
            reach_ms = 2**63 if swept else -1
            for record in reversed(records):
                some = held.get(record.key, ())
                if some and _rings(record.key, len(some), settings.fold_min):
                    reach_ms = max(reach_ms, record.made_ms + ROUNDED_MS, time_ms(max(some)))
                tail |= {token for token in some if token > upto and time_ms(token) <= reach_ms}
            if len(tail) >= settings.fold_min and (swept or not dropped):
                wrong.append(f"{lane}: {len(tail)} changes in the tail that nobody will fold")
    return wrong


def _rings(key: Key, changes: int, fold_min: int) -> bool:
    """An item with n changes: the first 8 bytes of SHA-256 of its keys are below n/fold_min of their range."""
    drawn = hashlib.sha256(b"\0".join((key.pk.encode(), key.sk.encode()))).digest()[:8]
    return int.from_bytes(drawn, "big") / 2**64 < changes / fold_min


def _listed(world: ServedWorld, lane: Lane) -> set[bytes]:
    """The tokens that the segments of a lane list."""
    cells = world.replicas[lane.region].cells.get(items.fold_pk(lane), {})
    segments = [cell.item for sk, cell in cells.items() if sk.startswith(items.SEGMENTS_FROM) and cell.item]
    return {token for item in segments for token in items.segment_of(lane, item).entries.tokens}
