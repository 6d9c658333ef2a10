"""Marks lanes that have something to do, from the table's stream."""
