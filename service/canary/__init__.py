"""Adds changes of its own, and tells whether the service reads and folds them."""
