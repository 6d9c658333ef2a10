from typing import Any

import pytest

from tests.infra import template


@pytest.fixture(params=["source", *(name for name, _ in template.packaged())])
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One Region's service template: from the sources, and as packaged."""
    found: dict[str, Any] = template.source() if request.param == "source" else dict(template.packaged())[request.param]
    return found
