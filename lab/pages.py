"""What `make docs` changes of a page: a link to a file outside docs/ becomes the file's name.

Rule 1: the pages are written for the repository, where such a link leads somewhere; tests/docs/test_readme.py sees that
it does. On the site there is no such file, and the text of the link names it.
"""

from __future__ import annotations

import re
from posixpath import dirname, normpath
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for every page, before it is rendered."""
    folder = dirname(page.file.src_uri)

    def inside(link: re.Match[str]) -> str:
        leaves = normpath(f"{folder}/{link[2]}" if folder else link[2]).startswith("..")
        return link[1] if leaves else link[0]

    return LINK.sub(inside, markdown)
