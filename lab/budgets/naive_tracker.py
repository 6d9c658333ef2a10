"""A budget as it is usually kept: read what was spent, compare, call, add. Its store never fails and is never stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger


class NaiveBudgets(CustomLogger):
    """Micro-dollars by `user=`; raises BudgetExceededError once a user's are spent."""

    def __init__(self, cap: int) -> None:
        super().__init__()
        self.spent: Counter[str] = Counter()
        self._cap = cap

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> None:
        if self.spent[kwargs["user"]] >= self._cap:
            raise litellm.BudgetExceededError(self.spent[kwargs["user"]] / 1e6, self._cap / 1e6)

    async def async_post_call_success_deployment_hook(
        self, request_data: Mapping[str, Any], response: Any, call_type: Any
    ) -> None:
        self.spent[request_data["user"]] += round(litellm.completion_cost(response) * 1e6)
