"""A drill: the deployed service is broken in each way that must not be silent, seen to alarm, and mended.

python -m lab.drill        all of it (`make drill`); with the name of a break, that one

watched    what an alarm of the deployed template watches     crossing   whether it is in alarm, from its datapoints
measured   its metrics, as this engine lets one measure them  breaks     what is broken, and how it is mended
ground     the deployed service: broken, fed, asked      trouble    one break from its beginning to its end
"""
