"""What things cost: one meter, the figures of docs/costs.md (`bench`), the ways to count side by
side (`compare`).

Rule 1: A unit is what a metered table charges for a request, by AWS's published rules
(`metered_table.py`); `cost` there says it of a call.
Rule 2: `make bench` prints every figure when it is there, its goal beside it: `goals.py` has those
of what users feel. It judges units, requests and instructions; what depends on the machine is a
ratio, and shown.
Rule 3: To read: `metered_table.py`, `lives.py`, `instructions.py`, then `one_counter.py`.
"""
