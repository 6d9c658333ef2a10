"""LiteLLM asks the network for nothing. Its list of prices is the same for every test."""

import copy
import os
from collections.abc import Iterator

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # before it is imported: it would ask the network for prices
os.environ["LITELLM_TELEMETRY"] = "False"

import litellm
import pytest

from budgets_lab.world import TwoGateways


@pytest.fixture
def world() -> TwoGateways:
    return TwoGateways(1_000)


@pytest.fixture
def price_list() -> Iterator[None]:
    """As it was, afterwards: LiteLLM registers the price of a call for the whole process."""
    before = copy.deepcopy(litellm.model_cost)
    yield
    litellm.model_cost.clear()
    litellm.model_cost.update(before)
    litellm.register_model({"gpt-4o": before["gpt-4o"]})  # which forgets what LiteLLM remembers of the list
