"""Budgets for what is paid by the call, such as LLMs, on a limited counter each. Contents:

budgets   for any framework: reserve an estimate, settle the cost; a context manager and a decorator
litellm   the same on LiteLLM's own hooks, for its proxy and its SDK
"""
