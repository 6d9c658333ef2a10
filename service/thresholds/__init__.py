"""Thresholds: `evaluate` keeps the crossings of a counter's value, and `event_bus` publishes each under one id."""
