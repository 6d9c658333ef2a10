"""The planted mistakes of the service: each rule of finding work left out once."""

from dataclasses import replace

from lab.histories.planting import Mistake

_PLANTED = (
    Mistake(
        "ring forgets what came late",
        "service/ring/records.py",
        "            seen.late.append(key.sk)\n",
        "            pass\n",
        first=79,
    ),
    Mistake(
        "a visit before the slot's end",
        "service/ring/ring.py",
        "    return min(DELAY_S_MAX, every_s + ahead_s + MARGIN_S + -(-settings.allowed_lateness_ms // 1_000))\n",
        "    return 0\n",
    ),
    Mistake(
        "the draw is by the token's bits",
        "service/ring/draw.py",
        '    return int.from_bytes(digest[:8], "big") * fold_min < RANGE * changes\n',
        '    from ledger import tokens\n    return tokens.draw(key.sk.partition("#")[0], fold_min) < changes\n',
    ),
    Mistake(
        "a pack rings as one change",
        "service/ring/records.py",
        "        if rings(key, settings.fold_min if held is None else held.changes, settings.fold_min):\n",
        "        if rings(key, 1, settings.fold_min):\n",
        first=60,
    ),
    Mistake(
        "one ask",
        "compactor/named.py",
        "    return reduce(Named.__or__, above, Named())\n",
        "    return Named()\n",
        cast="a_late_change_is_named_while_a_fold_is_under_way",
    ),
    Mistake(
        "looked up before begin",
        "compactor/settle.py",
        "    checkpoint = yield from begin(lane)\n    if checkpoint is None:\n",
        "    found = yield from cover(lane, candidates, consistent=True)\n"
        "    checkpoint = yield from begin(lane)\n    if checkpoint is None:\n",
        "compactor/settle.py",
        "    found = yield from cover(lane, candidates, consistent=True)\n    if found.hi is None:\n",
        "    if found.hi is None:\n",
        cast="two_settles",
    ),
    Mistake(
        "spare without a clock",
        "service/ring/ring.py",
        "if sent is not None and in_time(sent.at, now, (every_s - max(0, delay - sent.delay_s)) * 1_000):\n",
        "if sent is not None:\n",
        first=30,
    ),
    Mistake(
        "spared because of a message that was never confirmed",
        "service/ring/ring.py",
        "            done.failed[lane] = failure\n            continue\n",
        "            done.failed[lane] = failure\n"
        "            memory.rung[lane] = Sent(now, message.delay_s)\n            continue\n",
        first=310,
    ),
    Mistake(
        "a batch is answered before its lanes are in the directory",
        "service/ring/ring.py",
        "                done.failed[lane] = answer\n",
        "                memory.listed[lane] = None\n",
        first=250,
    ),
    Mistake(
        "a change from a clock ahead rings as any other",
        "service/ring/records.py",
        "            if ahead_s > MARGIN_S:\n",
        "            if False:\n",
    ),
    Mistake(
        "a change from a clock ahead is spared for a message that comes before it is old enough",
        "service/ring/ring.py",
        "(every_s - max(0, delay - sent.delay_s)) * 1_000",
        "every_s * 1_000",
    ),
    Mistake(
        "a message is done with though its visit failed",
        "service/compact/serve.py",
        "    done.sent = [Message(replace(work, tries=work.tries + 1), wait_s)]\n",
        "    done.sent = []\n",
    ),
    Mistake(
        "a visit that was stopped is done with",
        "service/compact/serve.py",
        '        done.outcome, done.sent = "stopped", [Message(work)]\n',
        '        done.outcome = "stopped"\n',
    ),
    Mistake(
        "joined messages forget the names of one",
        "service/work.py",
        "            late=self.late | other.late,\n",
        "            late=self.late or other.late,\n",
    ),
    Mistake(
        "the sweep loses a page",
        "service/sweep/sweep.py",
        "        yield from _send(swept, page, settings, pick)\n",
        "        if page.last is not None:\n            yield from _send(swept, page, settings, pick)\n",
    ),
)

SERVED = tuple(replace(mistake, served=not mistake.cast) for mistake in _PLANTED)
