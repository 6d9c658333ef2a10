"""End to end: the service deployed to an engine on this computer, in two Regions, used from outside and compared.

python -m lab.e2e          deploys, sends, waits for the schedule, reads and compares (`make e2e`)
"""
