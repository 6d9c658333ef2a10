"""The small casts, by part: their steps, and what they are."""
