"""The shipped classes on a real engine, in processes, while what is between them fails; every sum
is judged.

python -m lab.run demo        the gentle profile: your events (`make demo`)
python -m lab.run torture     the rough profile: everything fails at once (`make torture`)
"""
