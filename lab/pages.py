"""What `make docs` changes of a page, because the pages are written for the repository.

Rule 1: a link to a file outside docs/ becomes its text, which names the file;
tests/docs/test_readme.py sees that it is there.
Rule 2: the README stands where docs/index.md says so, without its title, so that nothing is said
twice.
Rule 3: in the reference a public class that a docstring names, or a call of it, leads to its own
entry. A name without an entry fails the build.
Rule 4: a search for a word that many pages say finds first the page that is about it.
"""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")
README = "<!-- README.md -->"
TAGS = {"retries.md": ["retry", "idempotency", "idempotent", "duplicates", "timeout"]}
"""Words that a search finds before every title, and that the page itself does not show."""

# Only pytest loads the plugin; docs/your-tests.md has its fixtures.
BELOW = {path.stem for path in ROOT.glob("exact_counter/[!_]*.py")} - {"pytest_plugin"}
PUBLIC = ("exact_counter", *(f"exact_counter.{name}" for name in sorted(BELOW)))
"""The modules that the reference is made of."""

NAMED = re.compile(r"<code>([A-Z]\w+)((?:\.\w+)?)</code>")


def on_config(config: Any) -> Any:
    """Called by MkDocs once. The repository's address is that of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.repo_url = project["urls"]["Source"]
    config.repo_name = "Source code"
    return config


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for every page, before it is rendered."""
    if tags := TAGS.get(page.file.src_uri):
        page.meta["tags"] = tags
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


def on_page_content(html: str, *, page: Any, **_: object) -> str:
    """Called by MkDocs for every page, after it is rendered and before its links are resolved."""
    if not page.file.src_uri.startswith("reference/"):
        return html
    modules = {name: module for module in PUBLIC for name in import_module(module).__all__}

    def link(named: re.Match[str]) -> str:
        if (module := modules.get(named[1])) is None:
            return named[0]
        return f'<autoref identifier="{module}.{named[1]}{named[2]}">{named[0]}</autoref>'

    return NAMED.sub(link, html)


def on_post_page(output: str, **_: object) -> str:
    """Called by MkDocs for every page, once it is rendered. By this attribute the theme asks GitHub
    for stars, and a page asks nobody.
    """
    return output.replace(' data-md-component="source"', "")


on_post_template = on_post_page  # of 404.html
