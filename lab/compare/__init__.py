"""The approaches compared: accuracy, cost, speed and scale, measured; the forecast, worked out; the page."""
