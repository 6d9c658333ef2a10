"""Adds changes of its own, and watches whether the service reads and folds them."""
