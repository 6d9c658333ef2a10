"""The planted mistakes of the service: each rule of finding work left out once."""

from dataclasses import replace

from lab.histories.planting import Mistake

_PLANTED = (
    Mistake(
        "ring forgets what came late",
        "service/ring/records.py",
        "        seen.late.append(key.sk)\n",
        "        pass\n",
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
        "    if rings(key, settings.fold_min if held is None else held.changes, settings.fold_min):\n",
        "    if rings(key, 1, settings.fold_min):\n",
        first=310,
    ),
    Mistake(
        "one ask",
        "compactor/named.py",
        "        naming.left, naming.above = rest, naming.above | Named.of(above)\n",
        "        naming.left = rest\n",
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
        "if sent is not None and in_time(sent.at, now, (job_every_s - max(0, pause_s - sent.delay_s)) * 1_000):\n",
        "if sent is not None:\n",
        first=30,
    ),
    Mistake(
        "spared because of a message that was never confirmed",
        "service/ring/ring.py",
        "            done.failed[message.job.lane] = failure\n            continue\n",
        "            done.failed[message.job.lane] = failure\n"
        "            memory.sent[message.job] = Sent(now, message.delay_s)\n            continue\n",
        first=1_530,
    ),
    Mistake(
        "a batch is answered before its lanes are in the directory",
        "service/ring/ring.py",
        "                done.failed[lane] = answer\n",
        "                memory.listed[lane] = None\n",
        first=295,
    ),
    Mistake(
        "a change from a clock ahead rings as any other",
        "service/ring/records.py",
        "        if ahead_s > MARGIN_S:\n",
        "        if False:\n",
    ),
    Mistake(
        "a change from a clock ahead is spared for a message that comes before it is old enough",
        "service/ring/ring.py",
        "(job_every_s - max(0, pause_s - sent.delay_s)) * 1_000",
        "job_every_s * 1_000",
    ),
    Mistake(
        "a message is done with though its visit failed",
        "service/compact/serve.py",
        "        _again(job, done, pause_s)\n",
        "        pass\n",
    ),
    Mistake(
        "a visit that was stopped is done with",
        "service/compact/serve.py",
        "            _again(job, done, wait_s(job.tries - 1) if job.tries else 0)\n",
        "            pass\n",
    ),
    Mistake(
        "named items are done with before they are settled",
        "compactor/named.py",
        "        yield from settle_these(lane, tally, below,",
        "        naming.left = rest\n        yield from settle_these(lane, tally, below,",
        cast="a_message_of_a_late_change_is_stopped_and_goes_on",
    ),
    Mistake(
        "the sweep loses a page",
        "service/sweep/sweep.py",
        "        yield from _send(swept, page, settings, pick)\n",
        "        if page.last is not None:\n            yield from _send(swept, page, settings, pick)\n",
    ),
)

_OF_THRESHOLDS = (
    Mistake(
        "a crossing is told before it is kept",
        "service/thresholds/evaluate.py",
        "            if (yield crossings.cross(before, crossing)) is None:\n",
        "            yield Publish(crossing, settings.table)\n"
        "            if (yield crossings.cross(before, crossing)) is None:\n",
    ),
    Mistake(
        "a crossing is kept whatever stands there",
        "ledger/lane/crossings.py",
        '    seen: Condition = Absent() if before is None else Equals("number", _n(before.number))\n',
        "    seen = None\n",
    ),
    Mistake(
        "the value is read before the crossings",
        "service/thresholds/evaluate.py",
        "        found: tuple[Item | None, ...] = yield GetMany(keys)\n",
        "        balance = (yield from balances([counter], settings, consistent=True))[counter]\n"
        "        found: tuple[Item | None, ...] = yield GetMany(keys)\n",
        "service/thresholds/evaluate.py",
        "                yield from _publish(crossing, settings.table, done)\n"
        "        balance = (yield from balances([counter], settings, consistent=True))[counter]\n",
        "                yield from _publish(crossing, settings.table, done)\n",
        cast="an_evaluation_while_a_change_comes_that_crosses",
    ),
    Mistake(
        "a crossing is noted as told before its event",
        "service/thresholds/evaluate.py",
        "    try:\n        yield Publish(crossing, table)\n",
        "    yield crossings.note_told(crossing)\n    try:\n        yield Publish(crossing, table)\n",
    ),
    Mistake(
        "nobody tells what another evaluation kept",
        "service/thresholds/evaluate.py",
        "            if crossing is not None and not crossing.is_told:\n",
        "            if False:\n",
    ),
    Mistake(
        "a message that asks for an evaluation may be served before what is spared because of it",
        "service/ring/ring.py",
        "want(Evaluate(lane), evaluate_every_s, evaluate_every_s + EVALUATE_MARGIN_S)",
        "want(Evaluate(lane), evaluate_every_s, 0)",
        first=700,
    ),
    Mistake(
        "the sweep evaluates nothing",
        "service/sweep/sweep.py",
        "        if done and settings.tells:\n",
        "        if False:\n",
    ),
    Mistake(
        "a checkpoint asks for no evaluation",
        "service/ring/records.py",
        '    if found is not None and (found[0] == "delta" or key == items.checkpoint_key(found[1])):\n',
        '    if found is not None and found[0] == "delta":\n',
        cast="a_stray_is_settled_beside_an_evaluation",
    ),
    Mistake(
        "a crossing asks for no evaluation",
        "service/ring/records.py",
        "    counter = lane.counter if lane is not None else crossings.counter_of(key.pk, settings.region)\n",
        "    counter = lane.counter if lane is not None else None\n",
        cast="an_evaluation_while_a_change_comes",
    ),
    Mistake(
        "only a new gate asks for an evaluation",
        "service/ring/records.py",
        '            "eventName": "INSERT" | "MODIFY",\n',
        '            "eventName": "INSERT",\n',
    ),
    Mistake(
        "what is added in another Region asks for no evaluation",
        "service/ring/records.py",
        "    counter = lane.counter if lane is not None else crossings",
        "    if lane is not None and lane.region != settings.region:\n        return None\n"
        "    counter = lane.counter if lane is not None else crossings",
        first=730,
    ),
    Mistake(
        "an evaluation that failed is done with",
        "service/compact/serve.py",
        "    yield from evaluate(job.lane.counter, settings, done.evaluated)\n",
        "    try:\n        yield from evaluate(job.lane.counter, settings, done.evaluated)\n"
        "    except LedgerError:\n        return\n",
    ),
)

SERVED = (
    *(replace(mistake, served=not mistake.cast) for mistake in _PLANTED),
    *(replace(mistake, thresholds=not mistake.cast) for mistake in _OF_THRESHOLDS),
)
