"""What `make docs` changes of a page, because the pages are written for the repository.

Rule 1: a link to a file outside docs/ becomes its text, which names the file;
tests/docs/test_readme.py sees that it is there.
Rule 2: the README stands where docs/index.md says so, without its title, so that nothing is said
twice.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")
README = "<!-- README.md -->"


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for every page, before it is rendered."""
    readme = (ROOT / "README.md").read_text().partition("\n")[2]
    markdown = markdown.replace(
        README, LINK.sub(lambda link: f"[{link[1]}]({normpath(join('..', link[2]))})", readme)
    )
    markdown = markdown.replace("](../docs/", "](")
    folder = dirname(page.file.src_uri)
    return LINK.sub(
        lambda link: link[1] if normpath(join(folder, link[2])).startswith("..") else link[0],
        markdown,
    )
