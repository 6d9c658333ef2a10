"""The ground floor: what all other rooms of the ledger speak of. It imports nothing of ours.

| file | what stands there |
|---|---|
| values, limit | changes, lanes, receipts; limits |
| period, period_name, keep, days | periods, and days |
| tokens, ranges, entries | the name of a change, sets of names, entries of 24 bytes |
| keys | the time in a key that brings it |
| checks, errors, decoding | what a caller may pass, and every error |
| settings, variables | the settings of a process, which check themselves; their variables |
| plan | what the settings say of one counter: its lanes, its limit, its period |
| items, actions, conditions | the items of a lane, and what a write does to one |
| requests, running, again | what a program asks of the table, and who drives it |
| cost, observing, clocks | what a call cost, who hears of it, what time it is |

A step of the protocol is a *program*: a generator that yields requests and is sent their answers.
It sends nothing itself, so the same program runs blocking, awaited, in memory, and in a simulator
that decides at each `yield` what happens elsewhere meanwhile:

    def first(lane):
        began = yield Now()                      # the clock of the program's driver
        item = yield Get(checkpoint_key(lane))   # the table
        return began, item

One request, from begin to end: a program yields it to `drive`. `Now` is answered from the clock of
the process. A driver that can run several programs answers `AtOnce`, which holds some. All other
requests go to `table.answer`: a request in, its answer out, a failure raised as a LedgerError at
the `yield`.
"""
