"""What stands between this library and others. Contents:

budgets        for what is paid by the call, such as LLMs, on a limited counter each, in any framework: reserve an
               estimate, settle the cost; a context manager and a decorator
litellm        the same on LiteLLM's own hooks, for its proxy and its SDK
logs           what each call came to, as a line of the standard logging
opentelemetry  the same as OpenTelemetry's metrics and spans
"""
