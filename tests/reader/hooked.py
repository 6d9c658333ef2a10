"""A Region in which something happens at a request."""

from collections.abc import Callable
from typing import Any

from ledger.requests import Request
from tests.support import Region


class Hooked(Region):
    """`after` sees each request with its answer, and says what is answered instead."""

    def __init__(self, after: Callable[["Hooked", Request, Any], Any], **given: Any) -> None:
        super().__init__(**given)
        self.after = after

    def answer(self, request: Request, /) -> Any:
        return self.after(self, request, super().answer(request))
