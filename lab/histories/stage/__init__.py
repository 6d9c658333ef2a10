"""What a history and a small cast stand on: a world, its processes, and how they take turns."""
