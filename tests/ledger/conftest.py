"""What is of each test of a gate."""

from collections.abc import Iterator

import pytest

from lab.histories.filing import filed_as


@pytest.fixture(autouse=True)
def _files_as_shipped() -> Iterator[None]:
    """Whatever a test set is undone."""
    with filed_as():
        yield
