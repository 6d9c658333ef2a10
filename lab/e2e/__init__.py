"""End to end: the service deployed to an engine on this computer, used from outside and compared,
or broken and mended.

python -m lab.e2e             two Regions: sends, waits for the schedule, reads and compares (`make e2e`)
python -m lab.e2e --breaks one Region: breaks it in each way, or in those that are named, sees its
alarms, mends it

site       where it was deployed        alarms     what an alarm watches, and CloudWatch's rule
user       all but these                metrics    what is measured on an engine whose CloudWatch
           has little
seats      limits                       breaks     what is broken, and in which metrics alarms see
           it
crossings  thresholds                   course     one break after the other
months     a period that closes         turn       when, and which answers are wrong then
quota      its limit, what is carried and what retires
"""
