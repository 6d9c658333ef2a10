"""The site that `make docs` builds: what a search finds, and where each page leads."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lab.pages import TAGS
from tests.docs.built import build_site
from tests.docs.pages import DOCS, ROOT

FOUND = {
    "oversell": "limits.html",
    "oversold": "limits.html",
    "overselling": "recipes/stock.html",
    "double spend": "recipes/wallet.html",
    "rate limit": "recipes/quota.html",
    "rate limiting": "recipes/quota.html",
    "exactly once": "retries.html",
}
"""What people search for, and the page that answers them."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


def test_a_search_finds_the_words_that_people_use(site: Path) -> None:
    index: Any = json.loads((site / "search" / "search_index.json").read_text())
    for words, page in FOUND.items():
        sections = [part for part in index["docs"] if part["location"].split("#")[0] == page]
        texts = [f"{part['title']} {part['text']}".lower() for part in sections]
        assert any(words in text for text in texts), f"{page} does not say {words!r}"


def test_a_page_is_found_by_words_that_others_say_more_often(site: Path) -> None:
    index: Any = json.loads((site / "search" / "search_index.json").read_text())
    for source, words in TAGS.items():
        page = source.replace(".md", ".html")
        assert [part["tags"] for part in index["docs"] if part["location"] == page] == [words]
        assert "md-tag" not in (site / page).read_text(), "the page shows its tags"


def test_each_page_leads_to_the_repository(site: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for page in site.rglob("*.html"):
        html = page.read_text()
        assert f'<a href="{project["urls"]["Source"]}" title="Go to repository"' in html
        assert 'data-md-component="source"' not in html, "the theme would ask GitHub for stars"


def test_the_moving_picture_is_small_and_goes_on_for_ever() -> None:
    picture = DOCS / "live.webp"
    assert picture.stat().st_size < 600_000
    with Image.open(picture) as image:
        assert (image.info["loop"], getattr(image, "n_frames", 1) > 20) == (0, True)
