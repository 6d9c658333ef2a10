"""What is outside of a call of `ledgerctl`: environment, session, tables, clock, pauses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import boto3
from botocore.config import Config

from ledger.core import clocks
from ledger.core.requests import Table
from ledger.tables.boto import CONFIG


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
