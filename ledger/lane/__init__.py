"""Lanes without a limit: each change is an item of its own, and a read sums them.

Items of a lane (core/items.py). A *delta* is one change, under its token; a *pack* is many changes
in one item. The compactor folds deltas into *segments*, and sums them in the *checkpoint* with the
*watermark*, the highest token that it counts. What lies above the watermark is the *tail*.
Beside the lanes: the *directory* names each lane that was ever written to, the table's *shape* says
what all processes must agree on.

One change, from begin to end:

    shape.py     before the first request: do this process's settings fit the table?
        |
    add.py       one conditional put of the delta: IF there is no item under its key
        |-- written ----------------------> "recorded"
        |-- the same change is there -----> "replayed": it counts once
        `-- another change is there ------> TokenConflict
        |
    tail.py      a read adds the tail to the checkpoint
        |
    compactor/   folds the tail into a segment, counts it in the checkpoint, deletes the deltas

Why so, and not otherwise:
- A retry must not count twice, and nobody reads first. So a change has a name, its token, and the
  put of that name has a condition: the table itself says whether it was there.
- Writers in every Region must not wait for each other. So nobody changes what another wrote: a lane
  belongs to one Region, and a change is an item. A counter item that all update would lose changes,
  because of two writes of one item in two Regions the last wins.
- A read has to stay cheap. So what is old is one sum, and only the tail is read item by item.
- A Region that lags may have newer deltas before older ones. So tokens are in the order of time,
  and a read takes all that is above the watermark: no change is in both the sum and the tail.
"""
