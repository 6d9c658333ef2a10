"""What is outside of a call of `ledgerctl`: environment, session, tables, clock, pauses,
a browser.
"""

from __future__ import annotations

import os
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import boto3
from botocore.config import Config

from ledger.core import clocks
from ledger.core.requests import Table
from ledger.tables.boto import CONFIG


def open_page(url: str) -> None:
    """Open a page in a browser with a window; one of the terminal would take the terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(url)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is outside.

    session: makes a boto3 session for a profile. tables: by Region, instead of DynamoDB.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    session: Callable[[str | None], boto3.Session] = lambda profile: boto3.Session(
        profile_name=profile
    )
    config: Config = CONFIG
    tables: Mapping[str, Table] | None = None
    clock: clocks.Clock = clocks.wall_clock
    entropy: clocks.Entropy = clocks.entropy
    pause: Callable[[float], None] = time.sleep
    open_page: Callable[[str], None] = open_page
