"""Rings for lanes that may have something to do, from the table's stream."""
