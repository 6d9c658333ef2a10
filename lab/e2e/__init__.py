"""End to end: the service deployed to an engine on this computer, used from outside and compared,
or broken and mended.

python -m lab.e2e           two Regions: sends, waits for the schedule, reads and compares
python -m lab.e2e --breaks  one Region: breaks it in each way, or in those that are named,
                            sees its alarms, mends it

site       where it was deployed        alarms   what an alarm watches, and CloudWatch's rule
user       all but these                metrics  what is measured on an engine whose
                                                 CloudWatch has little
seats      limits                       breaks   what is broken, and in which metrics alarms see it
crossings  thresholds                   course   one break after the other
month      a period that closes, its quota, what is carried and what retires
turn       when it closes, which answers are wrong then, and when items retire
"""
