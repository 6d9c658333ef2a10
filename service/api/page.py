"""The page at /try-it: Powertools' Swagger UI, so that it fits a phone and is dark where the system
is. Its example of a key has the present time, because a hold under an old key would be over.
"""

import os
from collections.abc import Callable
from typing import Any

from ledger.core import tokens
from ledger.core.clocks import wall_clock
from service.api.models import EXAMPLE_KEY

HEAD = """
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<script>
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.onchange = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  dark.onchange();
</script>
<style>
  body { margin: 0; }
  html.dark-mode { background: #1c2022; }
  @media (max-width: 640px) {
    body .swagger-ui .opblock-section-header { padding: 8px 12px; }
    body .swagger-ui .try-out .btn { margin: 0 0 0 6px; padding: 5px 14px; }
    body .swagger-ui .parameters :is(tr, td) { display: block; width: auto; padding: 0 0 8px; }
    body .swagger-ui .parameters thead, body .swagger-ui .response-col_links { display: none; }
    body .swagger-ui .filter .operation-filter-input { width: 100%; }
  }
</style>
"""
"""What the page's head lacks. Its own style sheet comes after it, and wins where both say the
same."""

BEGINS = "var ui = SwaggerUIBundle("
NO_DEFAULTS = """
  for (const { schema } of swaggerUIOptions.spec.paths["/counters"].get.parameters)
    delete schema.default;
  """
"""A form sends every default, and the API refuses those of a list where a counter is named."""


def fitting(app: Any, following: Callable[[Any], Any]) -> Any:
    """Gives the page HEAD, a new key, NO_DEFAULTS; a middleware of Powertools."""
    answer = following(app)
    if answer.headers.get("Content-Type", answer.content_type) == "text/html":
        key = tokens.make(wall_clock(), os.urandom(10))
        body = answer.body.replace("<head>", f"<head>{HEAD}", 1).replace(EXAMPLE_KEY, key)
        answer.body = body.replace(BEGINS, f"{NO_DEFAULTS}{BEGINS}", 1)
    return answer
