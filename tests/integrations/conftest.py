"""Tests of LiteLLM's hooks run where LiteLLM is installed: in the environment of `make litellm`."""

import os
from importlib.util import find_spec

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # before it is imported: it would ask the network for prices
os.environ["LITELLM_TELEMETRY"] = "False"

collect_ignore_glob = [] if find_spec("litellm") else ["test_litellm_*.py"]
