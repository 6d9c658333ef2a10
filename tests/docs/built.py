"""The site that `make docs` builds, for a test."""

from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.docs.pages import ROOT


def build_site(site: Path) -> Path:
    """All pages but the reference, which takes longer than all others."""
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        plugins=["search"],
        site_dir=str(site),
        exclude_docs="ruff.toml\nreference/",
    )
    config.nav = [part for part in config.nav or [] if "Reference" not in part]
    build(config)
    return site
