"""A plugin of pytest, beside sitecustomize.py: with `-p on_wheel` the repository's tests test the
wheel, or fail.
"""

import sys

import pytest
from sitecustomize import BELOW, DOOR, Alias  # type: ignore[import-not-found]

# pytest has put a finder of its own before ours. That one loads what it rewrites from `sys.path`,
# and it rewrites all of the clone, once a build has left an egg-info that names these files.
sys.meta_path.sort(key=lambda finder: not isinstance(finder, Alias))


def pytest_collection_finish() -> None:
    of_the_clone = [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in BELOW and not module.__name__.startswith(f"{DOOR}.")
    ]
    if of_the_clone:
        raise pytest.UsageError(f"These are not the wheel's: {', '.join(of_the_clone)}")
