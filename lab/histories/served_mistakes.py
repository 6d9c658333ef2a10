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
        "    return min(DELAY_S_MAX, every_s + MARGIN_S + -(-settings.allowed_lateness_ms // 1_000))\n",
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
        "        seen.rung |= rings(key, settings.fold_min if changes is None else changes, settings.fold_min)\n",
        "        seen.rung |= rings(key, 1, settings.fold_min)\n",
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
        "            if sent is not None and in_time(sent, now, every_s * 1_000):\n",
        "            if sent is not None:\n",
        first=30,
    ),
    Mistake(
        "spared because of a message that was never confirmed",
        "service/ring/ring.py",
        "            done.failed[lane] = failure\n            continue\n",
        "            done.failed[lane] = failure\n            memory.rung[lane] = now\n            continue\n",
    ),
    Mistake(
        "a batch is answered before its lanes are in the directory",
        "service/ring/ring.py",
        "                done.failed[lane] = answer\n",
        "                memory.listed[lane] = None\n",
    ),
    Mistake(
        "a tail that is not old enough is left to nobody",
        "service/compact/serve.py",
        "    if due_ms is not None and due_ms < 0:\n",
        "    if False:\n",
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
