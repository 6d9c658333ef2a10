"""The shipped programs on the simulator: seeded histories, every order of the steps of small casts,
planted mistakes.

python -m lab.histories             histories, judged (`make simulate`)
python -m lab.histories.explore     every order of small casts (`make explore`)
python -m lab.histories.mistakes    each planted in a copy of the code, and found (`make mistakes`)
"""
