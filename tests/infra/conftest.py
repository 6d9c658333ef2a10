import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.infra import template

PACKAGED = os.environ.get("LEDGER_PACKAGED", "")
"""The framework's own output, paths as `make package` gives them."""


@pytest.fixture(params=["source", *filter(None, PACKAGED.split(os.pathsep))])
def service(request: pytest.FixtureRequest) -> Any:
    """One Region's service template: from the sources, and as packaged."""
    return (
        template.source()
        if request.param == "source"
        else json.loads(Path(request.param).read_text())
    )
