"""What is right of a history or a small cast: judge.py has the one interface."""
