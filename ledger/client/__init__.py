"""What a producer calls: `Ledger`, and `AsyncLedger`, which is awaited.

| file | what stands there |
|---|---|
| writer, aio | the two classes: arguments, docstrings, who drives |
| preparing | what calls share, and each change's delta, made before anything is sent |
| programs | the program of each call, and the checks before its first request |
| holds, named_holds, hold_all, hold_order | amounts that are held, alone or in several counters |
| transfer, saga_steps | calls of several steps, each under a key of its own |
| gather | puts that share a request |
| queue, message | changes that wait in a queue, as JSON |

One change, from begin to end: `Ledger.add` prepares a delta. Its token and its lane are fixed then,
before anything is sent, so that each retry writes the same item. `programs.add` checks that the
counter's period takes changes and, once for each object, that the table's shape has the rules that
these settings have. Without a limit the change is one `Put` (ledger/lane); with one it goes to the
counter's gate (ledger/gate). `Ledger._run` drives the program with a table; its answer becomes a
Receipt, an error that leaves the change open an OutcomeUnknown with the delta, ready for `apply`.

Both classes share every program, so that they send and answer the same. A batch of several lanes
yields one `AtOnce`: `Ledger` runs its parts in threads, `AsyncLedger` in tasks.
"""
