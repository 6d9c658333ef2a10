"""Planted mistakes: each is one place of the shipped code changed, and the histories have to find every one of them.

A few show only where several rare things meet; a small cast that brings them together has to find those.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lab.histories.limited_mistakes import LIMITED
from lab.histories.planting import HISTORIES_MAX, Mistake, catch
from lab.histories.served_mistakes import SERVED

DELETED = (
    "        from ledger import items as i, requests as r, tokens as t\n"
    "        sks = [t.from_bytes(entry[:16]) for entry in {}]\n"
    "        yield r.DeleteMany(tuple(r.keyed(r.Key(i.delta_pk(lane), sk)) for sk in sks))\n"
)
HIGHEST_TAKEN = '__import__("ledger.tokens").tokens.from_bytes(taken.tokens[-1])'

MISTAKES = (  # those of cast.py, history.py and remade.py are mistakes of a producer, or of who runs the compactor
    Mistake(
        "the naive merge",
        "compactor/visit.py",
        "    checkpoint = yield from fold(\n",
        "    from lab.designs import naive\n"
        "    return (yield from naive.merge(lane))\n"
        "    checkpoint = yield from fold(\n",
        "reader/read.py",
        "        found = yield GetMany(",
        "        from lab.designs import naive\n"
        "        sums = []\n"
        "        for lane in lanes:\n"
        "            value, _ = yield from naive.read(lane, consistent=consistent)\n"
        "            held = sum(value >> n & 1 for n in range(64))\n"
        "            sums.append(LaneSum(lane, value, held))\n"
        "        return sums, True\n"
        "        found = yield GetMany(",
    ),
    Mistake(
        "deltas deleted at fold",
        "compactor/fold.py",
        "        tally.folded += len(found)",
        f"{DELETED.format('found')}        tally.folded += len(found)",
    ),
    Mistake(
        "deltas deleted just before the commit",
        "compactor/commit.py",
        "    version = before.version + 1 if before else 1\n",
        f"    if True:\n{DELETED.format('entries.apart')}    version = before.version + 1 if before else 1\n",
    ),
    Mistake(
        "tail read before the checkpoint",
        "reader/read.py",
        "        found = yield GetMany(tuple(items.checkpoint_key(lane) for lane in lanes), consistent)\n",
        "        early = yield GetMany(tuple(items.checkpoint_key(lane) for lane in lanes), consistent)\n"
        "        marks = [i and items.checkpoint_of(lane, i).watermark for lane, i in zip(lanes, early)]\n"
        "        first = [TailSum(lane, mark, consistent=consistent) for lane, mark in zip(lanes, marks)]\n"
        "        yield from _read_all(first)\n"
        "        found = yield GetMany(tuple(items.checkpoint_key(lane) for lane in lanes), consistent)\n",
        "reader/read.py",
        "        yield from _read_all([tail for tail, out in zip(tails, left_out, strict=True) if not out])\n",
        "        tails = first\n",
    ),
    Mistake(
        "tail at the watermark too",
        "ledger/lane/tail.py",
        "items.tail_after(watermark), consistent",
        "watermark and watermark[:-1], consistent",
        "ledger/lane/tail.py",
        "self._above = lane, bound(watermark, LOWEST)",
        "self._above = lane, bound(watermark and tokens.before(watermark), LOWEST)",
    ),
    Mistake(
        "no bound on a read's time",
        "reader/restart.py",
        "bounded and not in_time(began, ended, read_time_max_ms)",
        "False",
    ),
    Mistake(
        "no version condition",
        "compactor/commit.py",
        "items.version_is(before.version) if before else Absent()",
        "None",
    ),
    Mistake(
        "begin does not look for the last segment",
        "compactor/commit.py",
        "        if segment is not None:\n            return checkpoint\n",
        "        return checkpoint\n",
    ),
    Mistake(
        "no allowed lateness",
        "compactor/fold.py",
        "cutoff_ms = now.wall_ms - allowed_lateness_ms",
        "cutoff_ms = now.wall_ms",
    ),
    Mistake(
        "cutoff after the Query",
        "compactor/fold.py",
        "        if tail is None or watermark != left:\n"
        "            tail, asked = Tail(lane, watermark, tokens.last_of(cutoff_ms), consistent=True), now\n"
        "        found = yield from tail.take(fold_max)\n",
        "        asked = now\n"
        "        every = yield from Tail(lane, watermark, None, consistent=True).take()\n"
        "        from ledger.requests import Pause\n"
        "        yield Pause(allowed_lateness_ms * 6 // 5)\n"  # slow just there, which is rare by itself
        "        now = yield Now()\n"
        "        last = tokens.to_bytes(tokens.last_of(now.wall_ms - allowed_lateness_ms))\n"
        "        found = [entry for entry in every if entry[:TOKEN_BYTES] <= last][:fold_max]\n",
    ),
    Mistake(
        "the tail by the watermark's time, not by its ULID",
        "reader/read.py",
        "TailSum(lane, checkpoint.watermark if checkpoint else None,",
        "TailSum(lane, tokens.last_of(tokens.time_ms(checkpoint.watermark)) if checkpoint else None,",
    ),
    Mistake(
        "a compactor takes every lane for its own Region's",
        "lab/histories/history.py",
        "            lanes = own.lanes_of(cast.COUNTER, region)\n",
        "            lanes = own.lanes_of(cast.COUNTER)\n",
    ),
    Mistake(
        "shard chosen at random",
        "ledger/values.py",
        "    return Lane(region, tokens.draw(token, number) if number > 1 else 0, counter, number)",
        "    Lane.turn = getattr(Lane, 'turn', 0) + 1\n    return Lane(region, Lane.turn % number, counter)",
    ),
    Mistake(
        "watermark at the cutoff, not at the last delta taken",
        "compactor/fold.py",
        "hi=left, watermark=left",
        "hi=left, watermark=tokens.last_of(cutoff_ms)",
    ),
    Mistake(
        "settle moves the watermark",
        "compactor/settle.py",
        "watermark=checkpoint.watermark, now_ms",
        f"watermark={HIGHEST_TAKEN}, now_ms",
    ),
    Mistake(
        "settle files strays under their own hi",
        "compactor/settle.py",
        "hi=found.hi, watermark",
        f"hi={HIGHEST_TAKEN}, watermark",
    ),
    Mistake(
        "settle confirms with a stale read",
        "compactor/settle.py",
        "cover(lane, candidates, consistent=True)",
        "cover(lane, candidates, consistent=False)",
    ),
    Mistake(
        "only the first segment of a cover is looked at",
        "compactor/listing.py",
        "        if not pages.more:\n            return",
        "        return",
        cast="two_settles",
    ),
    Mistake(
        "checkpoint without settle's count",
        "compactor/commit.py",
        "        count=(before.count if before else 0) + len(entries),",
        "        count=(before.count if before else 0) + (len(entries) if hi == watermark else 0),",
    ),
    Mistake(
        "clean at the first visit",
        "compactor/clean.py",
        "        elif now.wall_ms - note.noted_ms < keep_ms:\n            return strays\n",
        "",
        cast="a_read_that_visits_overtake_within_its_time",
    ),
    Mistake(
        "a note from the future is waited for",
        "compactor/clean.py",
        "        if now.wall_ms < note.noted_ms - AHEAD_MAX_MS:\n            note = None\n        elif",
        "        if",
    ),
    Mistake(
        "clean without asking the other Regions",
        "compactor/clean.py",
        "        if region == lane.region:\n            continue\n",
        "        continue\n",
    ),
    Mistake(
        "clean deletes what versions after the note list",
        "compactor/clean.py",
        ", versions_upto=version)",
        ")",
        cast="a_stray_that_is_settled_while_an_older_version_is_cleaned",
    ),
    Mistake(
        "clean deletes what is not listed",
        "compactor/clean.py",
        "if listed.issuperset(held.apart)]",
        "]",
    ),
    Mistake(
        "no rebuild after a replica was made again",
        "lab/histories/remade.py",
        "                    yield from self._rebuild(lane)\n",
        "",
    ),
    Mistake(
        "rebuild keeps an orphan",
        "compactor/rebuild.py",
        "yield from _delete(lane, noted, *orphans)",
        "yield from _delete(lane, noted)",
    ),
    Mistake(
        "a retry mints a new token",
        "lab/histories/cast.py",
        "                yield from add(mine[0].delta)\n",
        "                delta = mine[0].delta\n"
        "                fresh = tokens.make(tokens.time_ms(delta.token), bytes([choices.pick(250)] * 10))\n"
        "                yield from add(Delta(delta.lane, fresh, delta.change))\n",
    ),
    Mistake(
        "a retry goes to its own Region's lane",
        "lab/histories/cast.py",
        "                yield from add(mine[0].delta)\n",
        "                delta = mine[0].delta\n"
        "                yield from add(Delta(Lane(region, 0, COUNTER), delta.token, delta.change))\n",
    ),
    # packs
    Mistake(
        "a reader knows no token again",
        "ledger/lane/tail.py",
        "self._unique.new(items.entries_of(self.lane, i).between(self._above, HIGHEST))",
        "items.entries_of(self.lane, i).between(self._above, HIGHEST)",
    ),
    Mistake(
        "a reader knows the tokens of a page alone",
        "ledger/lane/tail.py",
        "        self._pages.turn(page)\n",
        "        self._pages.turn(page)\n        self._unique = Unique(PACK_SPAN_MS)\n",
    ),
    Mistake(
        "packs are held against packs, not against single deltas",
        "ledger/entries.py",
        "self._young.add(found)",
        "self._young.add(found if len(found) > 1 else ())",
    ),
    Mistake(
        "a token is forgotten at once, not a span later",
        "ledger/entries.py",
        "last_ms - self._span_ms > self._old_until_ms",
        "last_ms > self._old_until_ms",
    ),
    Mistake(
        "a reader counts what its packs hold at or below the watermark",
        "ledger/lane/tail.py",
        ".between(self._above, HIGHEST)",
        "",
    ),
    Mistake(
        "clean deletes a pack when one of its entries is listed",
        "compactor/clean.py",
        "listed.issuperset(held.apart)",
        "not listed.isdisjoint(held.apart)",
        cast="a_pack_with_a_stray_among_a_clean_and_a_settle",
    ),
    Mistake(
        "clean looks at the highest token of a pack alone",
        "compactor/clean.py",
        "listed.issuperset(held.apart)",
        "held.apart[-1] in listed",
        cast="a_pack_with_a_stray_among_a_clean_and_a_settle",
    ),
    Mistake(
        "a pack's name has its lowest token",
        "ledger/values.py",
        "tokens.from_bytes(self.entries.tokens[-1])",
        "tokens.from_bytes(self.entries.tokens[0])",
    ),
    Mistake(
        "a pack's name does not tell its content",
        "ledger/values.py",
        "hashlib.sha256(self.entries.data)",
        "hashlib.sha256()",
    ),
    Mistake(
        "fold takes whole packs, also above the cutoff",
        "ledger/lane/tail.py",
        "entries.between(self._above, self._upto)",
        "entries.between(self._above, HIGHEST)",
    ),
    Mistake(
        "fold looks no further than the cutoff",
        "ledger/lane/tail.py",
        "else items.tail_upto(upto)",
        "else items.tail_after(upto)",
    ),
    Mistake(
        "fold takes what is not complete",
        "ledger/lane/tail.py",
        "return bisect_left(self._found, self._complete) if self._pages.more else len(self._found)",
        "return len(self._found)",
    ),
    Mistake(
        "fold_max cuts in the order of the items",
        "ledger/lane/tail.py",
        "        self._found.sort()\n",
        "",
        "compactor/fold.py",
        "Entries.of(found)",
        "Entries.of(sorted(found))",
    ),
    Mistake(
        "fold knows no token again",
        "ledger/lane/tail.py",
        "self.unique.new(entries.between(self._above, self._upto)).apart",
        "entries.between(self._above, self._upto).apart",
        "compactor/fold.py",
        "Entries.of(found)",
        'Entries(b"".join(found), tuple(entry[:TOKEN_BYTES] for entry in found))',
    ),
    Mistake(
        "what was read ahead is kept though another folded",
        "compactor/fold.py",
        "if tail is None or watermark != left:",
        "if tail is None:",
    ),
    Mistake(
        "settle ignores packs that reach above the watermark",
        "compactor/listing.py",
        "items.tail_after(watermark) if whole else items.tail_upto(watermark)",
        "items.tail_after(watermark)",
        cast="strays_in_a_pack_of_the_tail_against_two_settles",
    ),
    Mistake(
        "settle takes what a pack holds above the watermark",
        "compactor/listing.py",
        "held.between(LOWEST, self._upto)",
        "held",
    ),
    Mistake(
        "no bound on a pack's span",
        "ledger/lane/add.py",
        "span_ms <= PACK_SPAN_MS and ",
        "",
        "ledger/values.py",
        "if self.entries.span_ms > PACK_SPAN_MS:",
        "if False:",
    ),
    Mistake(
        "of two changes under a token fold takes the last, a read the first",
        "ledger/lane/tail.py",
        "        self._found.sort()\n",
        "        self._found = sorted({e[:16]: e for e in [*self._found, *self.unique.again]}.values())\n",
    ),
    Mistake(
        "a read that left out a tail does not say so",
        "reader/read.py",
        "until_ms = tokens.time_ms(checkpoint.watermark) if checkpoint and out else None",
        "until_ms = None",
    ),
    Mistake(
        "a read that left out a tail says it is of now",
        "reader/read.py",
        "tail.count, tail.oldest_ms, until_ms)",
        "tail.count, tail.oldest_ms, until_ms and began.wall_ms)",
    ),
    Mistake(
        "acknowledged before the put is",
        "lab/histories/packs.py",
        "                answers.append(failure)\n",
        "                answers.append(None)\n",
    ),
)


def main(mistakes: Sequence[Mistake]) -> None:
    """Plant every mistake, each in a copy of its own, and tell how each is found. Exit code 1 when one is not."""
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each is played by a process of its own
        for caught in pool.map(catch, mistakes):
            missed += not caught.by
            print(f"{caught.by or 'NOT FOUND':<10}  {caught.mistake.name}: {caught.said[:70]}", flush=True)
    found = f"{len(mistakes) - missed} of {len(mistakes)} planted mistakes found"
    print(f"{found}, within {HISTORIES_MAX:,} histories each or by a small cast")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m lab.histories.mistakes", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--limited", action="store_true", help="those of limited counters")
    parser.add_argument("--served", action="store_true", help="those of the service")
    given = parser.parse_args()
    known = {each.name: each for each in (LIMITED if given.limited else SERVED if given.served else MISTAKES)}
    if unknown := set(given.names) - known.keys():
        parser.error(f"no such mistake: {', '.join(sorted(unknown))}")
    main([known[name] for name in given.names or known])
