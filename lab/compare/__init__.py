"""The designs compared: accuracy, cost, speed and scale, measured; the page."""
