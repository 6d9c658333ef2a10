"""The approaches compared: accuracy, cost, speed and scale, measured; the page."""
