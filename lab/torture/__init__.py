"""Torture: the shipped classes on a real engine, while processes, connections and Regions fail.

python -m lab.torture                     a run and its judgement (`make torture`)
"""
