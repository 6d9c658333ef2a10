"""LLM budgets under load: many customers' calls at once in two Regions under faults, on real
LiteLLM.

Rule 1: what is judged is what the provider answered, not what a tracker believes.
Rule 2: both trackers get the same calls; the naive one reads, compares, calls and adds, on a store
that never fails.
Rule 3: LiteLLM asks the network for nothing, and its prices are those of its package.
"""

import os

# before it is imported
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
