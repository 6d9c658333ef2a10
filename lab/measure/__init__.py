"""What things cost: one meter, the figures of docs/costs.md (`bench`), the ways to count side by side (`compare`).

Rule 1: A unit is what the meter charges for a request and its answer, by AWS's published rules (`charges.py`).
Rule 2: Every figure is printed when it is there. A goal rests on nothing that depends on the machine.
Rule 3: To read: `charges.py`, `lives.py`, then `scenarios.py` and `one_counter.py`.
"""
