"""The planted mistakes of limited counters: each rule of a gate left out once."""

from dataclasses import replace

from lab.histories.planting import Mistake

_PLANTED = (
    Mistake(
        "low is not looked at",
        "ledger/gate/updates.py",
        "_is_above_low(min(names)) if seen is None else _version_is(seen)]",
        "*([] if seen is None else [_version_is(seen)])]",
    ),
    Mistake(
        "fingerprints are not looked at",
        "ledger/gate/updates.py",
        '            conditions.append(Not(Contains("moved", {"B": fingerprint(token)})))\n',
        "            pass\n",
    ),
    Mistake(
        "fingerprints are forgotten",
        "ledger/gate/roll.py",
        "    marks = gate.moved | {fingerprint(token) for token in (*recent, *holds)}\n",
        "    marks = frozenset(map(fingerprint, (*recent, *holds)))\n",
    ),
    Mistake(
        "a filed hold leaves no fingerprint",
        "ledger/gate/roll.py",
        "{fingerprint(token) for token in (*recent, *holds)}",
        "{fingerprint(token) for token in recent}",
    ),
    Mistake(
        "fingerprints of low's own slice are dropped",
        "ledger/gate/limits.py",
        "    return distance(mark, low) < _SLICES // 2\n",
        "    return 0 < distance(mark, low) < _SLICES // 2\n",
    ),
    Mistake(
        "what lies far ahead is filed",
        "ledger/gate/roll.py",
        "    return time_ms(token) < time_ms(low) + FAR_MS\n",
        "    return True\n",
        cast="a_retry_of_what_lies_far_ahead_against_a_roll",
    ),
    Mistake(
        "low can fall",
        "ledger/gate/roll.py",
        "    low = max(gate.low, last_of(",
        '    low = max("", last_of(',
    ),
    Mistake(
        "hi can fall",
        "ledger/gate/roll.py",
        "    top = max(gate.top, *above) if above else gate.top\n",
        "    top = max(above) if above else gate.top\n",
    ),
    Mistake(
        "a segment says the new low",
        "ledger/gate/roll.py",
        "Filed(lane, top, version, gate.low, above)",
        "Filed(lane, top, version, low, above)",
    ),
    Mistake(
        "late entries stand in the segment",
        "ledger/gate/roll.py",
        "for token in recent if token > gate.low}",
        "for token in recent}",
    ),
    Mistake(
        "a segment is named without its content",
        "ledger/gate/limits.py",
        '        return hashlib.sha256(f"{self.low}:{text}".encode()).hexdigest()[:32]\n',
        "        return hashlib.sha256(text[:0].encode()).hexdigest()[:32]\n",
    ),
    Mistake(
        "what is filed is removed before it is put",
        "ledger/gate/roll.py",
        "    for start in range(0, len(puts), PUTS):\n",
        "    after, kept = _kept(gate.moved | set(map(fingerprint, (*recent, *holds))), low, gates.filing.moved_max)\n"
        "    early = updates.finish_roll(gate, recent, holds, after, top, kept, slack_ms)\n"
        "    if not isinstance((yield gates.at(lane, early)), Written):\n"
        "        return False\n"
        "    for start in range(0, len(puts), PUTS):\n",
        "ledger/gate/roll.py",
        "    return isinstance((yield gates.at(lane, update)), Written)\n",
        "    return update is not None\n",
    ),
    Mistake(
        "a roll is finished whatever was filed since",
        "ledger/gate/updates.py",
        "tuple(actions), _version_is(gate.version), shows=True",
        "tuple(actions), Not(Absent()), shows=True",
    ),
    Mistake(
        "what was looked up is decided whatever was filed since",
        "ledger/gate/updates.py",
        "_is_above_low(min(names)) if seen is None else _version_is(seen)]",
        "*([_is_above_low(min(names))] if seen is None else [])]",
    ),
    Mistake(
        "looked up before the version is read",
        "ledger/gate/decide.py",
        "            seen, slack_ms = gate.version, gate.slack_after(token, gates.filing)\n",
        "            gate = yield from gates.read(lane)\n"
        "            seen, slack_ms = gate.version, gate.slack_after(token, gates.filing)\n",
        cast="a_late_add_twice_at_once_and_its_roll",
    ),
    Mistake(
        "looked up eventually",
        "ledger/gate/look_up.py",
        "items.SEGMENTS_UPTO, SEGMENTS_OF_PAGE))\n"
        "    notes = Get(items.late_key(lane, token)), Get(items.hold_key(lane, token))\n",
        "items.SEGMENTS_UPTO, SEGMENTS_OF_PAGE, False))\n"
        "    notes = Get(items.late_key(lane, token), False), Get(items.hold_key(lane, token), False)\n",
    ),
    Mistake(
        "only the first segment is looked at",
        "ledger/gate/look_up.py",
        "        if not pages.more:\n            return None\n        page =",
        "        if True:\n            return None\n        page =",
        "ledger/gate/look_up.py",
        "        for item in page.items:\n",
        "        for item in page.items[:1]:\n",
    ),
    Mistake(
        "a filed hold is not looked up",
        "ledger/gate/look_up.py",
        "    return Known(held=items.hold_of(lane, hold)[1]) if hold is not None else None\n",
        "    return None\n",
    ),
    Mistake(
        "the note of a hold is believed",
        "ledger/gate/look_up.py",
        "    if late is not None:\n",
        "    if hold is not None:\n        return Known(held=items.hold_of(lane, hold)[1])\n    if late is not None:\n",
    ),
    Mistake(
        "the note is deleted before the hold has ended",
        "ledger/gate/end.py",
        "        answer: Item | Written = yield gates.at(lane, updates.end(",
        "        if filed is not None:\n            yield from forget(gates, lane, {token: amount})\n"
        "        answer: Item | Written = yield gates.at(lane, updates.end(",
    ),
    Mistake(
        "the end of a hold does not look whether it is there",
        "ledger/gate/updates.py",
        "[Equals((HELD, token), number(n)) for token, n in amounts.items()]",
        "[Not(Absent()) for token in amounts]",
    ),
    Mistake(
        "a filed hold ends whatever was filed since",
        "ledger/gate/updates.py",
        "        conditions.append(_version_is(filed))\n",
        "",
        cast="two_ends_of_a_filed_hold_and_their_rolls",
    ),
    Mistake(
        "a filed hold ends though the gate knows it",
        "ledger/gate/updates.py",
        "for token in amounts for name in (RECENT, HELD)]",
        "for token in amounts for name in ()]",
        cast="two_ends_of_a_filed_hold_and_their_rolls",
    ),
    Mistake(
        "a capture keeps what was not used",
        "ledger/gate/updates.py",
        "    back_down, back_up = shares(amounts.values())\n",
        "    back_down, back_up = shares(amounts.values()) if not used else (max(0, -used), max(0, used))\n",
    ),
    Mistake(
        "a release leaves no outcome",
        "ledger/gate/updates.py",
        "    ended = dict.fromkeys(amounts, outcome)\n",
        "    ended = dict.fromkeys(amounts if used else (), outcome)\n",
    ),
    Mistake(
        "holds that are over are not ended",
        "ledger/gate/expire.py",
        "        over = dict(sorted(gate.over(now_ms).items())[: updates.EXPIRED_MAX])\n",
        "        over = dict[str, int]()\n",
    ),
    Mistake(
        "filed holds that are over are not asked for",
        "ledger/gate/expire.py",
        "    return (yield from _filed(gates, gate, now.wall_ms))\n",
        "    return gate\n",
    ),
    Mistake(
        "expired although it was decided",
        "ledger/gate/expire.py",
        "            if known is not None and known.outcome is not None:\n",
        "            if known is None:\n",
        "ledger/gate/expire.py",
        "            elif known is not None:\n",
        "            else:\n",
    ),
    Mistake(
        "a hold is filed where the caller is",
        "ledger/gate/roll.py",
        "        answers = yield gates.at(lane, Together(tuple(puts[start : start + PUTS])))\n",
        "        answers = yield Together(tuple(puts[start : start + PUTS]))\n",
    ),
    Mistake(
        "a gate is written where the caller is",
        "ledger/gate/gates.py",
        "        return request if lane.region == self.here else At(lane.region, request)\n",
        "        return request\n",
    ),
    Mistake(
        "a gate is made whether or not there is one",
        "ledger/gate/gates.py",
        "Put(items.new_gate(lane, self.limit), Absent())",
        "Put(items.new_gate(lane, self.limit))",
    ),
    Mistake(
        "first rights in every lane",
        "ledger/gate/limits.py",
        "        return lane.region == self.region and lane.shard == 0\n",
        "        return True\n",
    ),
    Mistake(
        "a right is taken that is not there",
        "ledger/gate/updates.py",
        "        checks.append(AtLeast(side, number(-change)) if change < 0 else Not(Absent(side)))\n",
        "        checks.append(Not(Absent(side)))\n",
    ),
    Mistake(
        "given without having it",
        "ledger/gate/updates.py",
        "    return Update(items.gate_key(lane), actions, AtLeast(side, number(amount)), shows=True)\n",
        "    return Update(items.gate_key(lane), actions, Not(Absent(side)), shows=True)\n",
    ),
    Mistake(
        "taken over twice",
        "ledger/gate/updates.py",
        "All((Not(Absent(giver[1])), was))",
        "Not(Absent(giver[1]))",
    ),
    Mistake(
        "the other lanes are not asked",
        "ledger/gate/obtain.py",
        "    others = [other for other in gates.lanes if other != lane]\n    copies",
        "    others = list[Lane]()\n    copies",
    ),
    Mistake(
        "refused though a Region was not asked",
        "ledger/gate/obtain.py",
        "    if silent:\n",
        "    if not asked:\n",
    ),
    Mistake(
        "rights are summed, not what lanes own",
        "ledger/gate/obtain.py",
        "sum(each.own(side) for",
        "sum(each.rights[side] for",
    ),
    Mistake(
        "what is on its way to a third lane stays there",
        "ledger/gate/obtain.py",
        "                yield from take_over(gates, asked[name], giver, side)\n",
        "                yield from ()\n",
    ),
    Mistake(
        "asked once, by an old copy",
        "ledger/gate/obtain.py",
        "        if there.rights[side] <= 0:\n            if freed:\n",
        "        if there.rights[side] <= 0:\n            if copy is not None or freed:\n",
    ),
    Mistake(
        "refused although there is enough by now",
        "ledger/gate/updates.py",
        "[*_open([token], seen), Either(short)]",
        "_open([token], seen)",
    ),
    Mistake(
        "a refusal is not written down",
        "ledger/gate/decide.py",
        "        answer = yield gates.at(lane, updates.refuse(lane, limit, token, delta.change, seen))\n"
        "        if isinstance(answer, Written):\n",
        "        if not answer or True:\n",
    ),
    Mistake(
        "a group asks for its first token alone",
        "ledger/gate/updates.py",
        "{RECENT: changes}, _open(changes, seen)",
        "{RECENT: changes}, _open([*changes][:1], seen)",
    ),
    Mistake(
        "a group forgets that some were looked up",
        "ledger/gate/group.py",
        "        seen = gate.version if len(unsure) > len(there.keys() & set(unsure)) else None\n",
        "        seen = gate.version\n",
        "ledger/gate/updates.py",
        "_is_above_low(min(names)) if seen is None else _version_is(seen)]",
        "*([_is_above_low(min(names))] if seen is None else [_version_is(seen)] * (len(names) < 2))]",
        cast="a_late_group_against_one_of_its_changes_and_a_roll",
    ),
    Mistake(
        "a limit is set whoever else sets it",
        "ledger/gate/updates.py",
        '    unchanged = [Equals("epoch", number(gate.epoch))]\n',
        "    unchanged = list[Condition]()\n",
        cast="two_limits_at_once",
    ),
    Mistake(
        "a tighter limit takes nothing",
        "ledger/gate/updates.py",
        "    rights = {side: -amount for side, amount in taken.items()}\n",
        "    rights = {side: max(0, -amount) for side, amount in taken.items()}\n",
    ),
    Mistake(
        "a history takes whatever is listed",
        "ledger/gate/standing.py",
        "for version, token, n in listed if version <= gate.version and token",
        "for _, token, n in listed if token",
    ),
    Mistake(
        "a history is not counted",
        "ledger/gate/standing.py",
        "        if sum(map(counts, left.values())) == gate.count:\n",
        "        if gate.count >= 0:\n",
    ),
    Mistake(
        "rebuilt: only what the gate's version had filed counts",
        "ledger/gate/rebuild.py",
        "    listed = _listed_once(found) | late\n",
        "    listed = filed_by(gate, found.listed) | late\n",
    ),
    Mistake(
        "rebuilt: what is listed stays in the gate too",
        "ledger/gate/rebuild.py",
        "    recent = {token: outcome for token, outcome in gate.recent.items() if token not in listed}\n",
        "    recent = dict(gate.recent)\n",
    ),
    Mistake(
        "rebuilt: a hold whose end is listed goes on",
        "ledger/gate/rebuild.py",
        "        held={token: amount for token, amount in gate.held.items() if token not in listed},\n",
        "",
    ),
    Mistake(
        "rebuilt: low stays",
        "ledger/gate/rebuild.py",
        "        low=highest,\n",
        "",
    ),
    Mistake(
        "rebuilt: low is at the highest token, though a segment's name is higher",
        "ledger/gate/rebuild.py",
        ", *(each.hi for each in found.segments)",
        "",
    ),
    Mistake(
        "rebuilt: the version stays",
        "ledger/gate/rebuild.py",
        "        version=max(gate.version, *(version for version, _, _ in found.listed), 0) + 1,\n",
        "        version=gate.version + 1,\n",
    ),
    Mistake(
        "rebuilt: what is lost leaves the value",
        "ledger/gate/rebuild.py",
        "    late = (_correction(gate, lost, lost_sum) if lost > 0 else {}) | _missed(found)\n",
        "    late = _missed(found)\n",
    ),
    Mistake(
        "rebuilt: filed holds keep nothing",
        "ledger/gate/rights.py",
        "    held = [{**gate.held, **each.open(gate)} for each, gate in zip(found, seen, strict=True)]\n",
        "    held = [dict(gate.held) for each, gate in zip(found, seen, strict=True)]\n",
    ),
    Mistake(
        "rebuilt: the note of a hold that ended keeps rights",
        "ledger/gate/rights.py",
        "**each.open(gate)}",
        "**each.notes}",
    ),
    Mistake(
        "rebuilt: a lane gave less than others got",
        "ledger/gate/rights.py",
        "replace(gate, given=given, got=got)",
        "replace(gate, given={**given, **gate.given}, got=got)",
    ),
    Mistake(
        "rebuilt: a lane owes while another has some",
        "ledger/gate/rights.py",
        "    for way, amount in list(_moves(due)):\n",
        "    for way, amount in list(_moves(due))[:0]:\n",
    ),
    Mistake(
        "rebuilt: rights stay as they were",
        "ledger/gate/rights.py",
        "    return replace(settled, rights={side: due[side] for side in gate.rights})\n",
        "    return settled if due else gate\n",
    ),
)

LIMITED = tuple(replace(mistake, limited=True) for mistake in _PLANTED)
