"""Lanes with a limit: one item, the gate, decides every change of its lane.

Items of a lane (items.py). The *gate* has the tokens that it decided lately, each with its outcome;
the open holds; the sums of what it filed; and *rights*: how much it may still lower and raise the
value by itself. When it grows, a *roll* files the oldest tokens in *segments* and *late entries*,
and the holds as *notes*, and removes them from the gate.

One change, from begin to end:

    decide.py    one conditional Update of the gate: IF the token is open and the rights suffice,
        |        note the token's outcome and take the rights
        |-- written ----------------------> perhaps roll (filing.py), receipt (answer.py)
        |-- there is no gate -------------> make it as this Update leaves it (gates.py): one Put
        |-- the gate knows the token -----> the outcome of the first call (answer.py)
        |-- the token may be filed -------> look it up (past.py): that outcome, or try again
        `-- the rights are too few -------> end holds that are over, and get rights from the other
                                            lanes (move.py) and the period before (carry.py). Then
                                            try again, or write the refusal, which is final, too

updates.py writes each Update as a value, gate.py says what a gate is, holds.py ends holds,
set_limit.py sets another limit, sold_out.py is what a process remembers. For readers: copies.py,
history.py and repeated.py; left.py is what a refusal shows. Who imports whom, the lowest first:
gate; items and updates; gates; decide.

Why so, and not otherwise:
- A decision has to be exact in one request. So the token and the rights stand in one item, and one
  condition looks at both; a transaction over two items would cost twice as much.
- A retry has to get the first answer for ever, and an item has a largest size. So tokens are filed,
  and the gate keeps enough of each (`low`, a fingerprint) to show that a new token is new, without
  a read.
- No Region may wait for another one to sell what it has. So rights are split between lanes, and
  only a lane that is short asks others. The rights in gates, on their way and in open holds are
  together what is left of the limit: lanes that never go below 0 keep it together.
- Nothing runs beside the calls. A call that needs room rolls, and a call that is short of rights
  ends the holds that are over: no sweeper has to run for a counter to be right.
"""
