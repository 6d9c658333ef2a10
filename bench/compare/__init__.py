"""The approaches compared: accuracy, cost, speed and scale, measured; partitions and the bill, worked out; the page."""
