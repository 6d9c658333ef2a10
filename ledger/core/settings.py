"""Settings: what a process must know of the table and of the protocol's times.

Rule 1: Settings are frozen and check themselves, so that settings that contradict each other never
reach the table.
Rule 2: Only `from_env` reads the environment, and an argument wins over it.
Rule 3: What they say of one counter is its `Plan`, made once (`plan_of`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from typing import Any, Literal, get_args

from ledger.core import tokens, variables
from ledger.core.checks import check_counter, check_flag, check_region, is_url, wrong_prefix
from ledger.core.entries import ENTRIES_MAX
from ledger.core.errors import InvalidInput, InvalidSettings, shown
from ledger.core.keep import Keep, Term, term_of
from ledger.core.limit import Limit, Threshold, check_of_limits, check_thresholds
from ledger.core.period_name import is_dated
from ledger.core.plan import Plan, longest, rule_of
from ledger.core.values import Lane
from ledger.core.variables import REGION_FROM

FOLD_MAX_LIMIT = ENTRIES_MAX

_OF_AWS = r"[a-z]+(-[a-z]+)*-(central|(north|south)(east|west)?|east|west)-\d{1,2}"
"""The form of AWS's names: AWS adds Regions and areas, so a list would grow old."""

SHARDS_MAX = 1_000
PLANS_MAX = 10_000
"""Counters whose plans are kept, for each of SETTINGS_MAX Settings."""
SETTINGS_MAX = 64

LEAST = {"allowed_lateness_ms": 0} | dict.fromkeys(
    ("keep_ms", "read_time_max_ms", "fold_min", "fold_max", "clean_units_per_s"), 1
)
"""The settings that are numbers, and the least value of each."""

FLAGS = ("clean", "insert_only", "unshared_limits")
ClientName = Literal["boto3", "fast"]
"""A client that a class makes where it is given none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the table is and how the protocol is tuned. Times are milliseconds. Raises
    InvalidSettings.

    - table: the table's name. region: this process's Region. regions: every Region where anyone
      adds or reads, the same in every process (default: `region` alone). Never take a Region out
      while its lanes hold changes.
    - endpoint_url: an endpoint other than AWS's; then Regions may have any names of a-z, 0-9 and
      hyphens.
    - shards: counter-name prefix -> number of shards. The longest prefix that fits decides. The
      number of a counter's shards never changes.
    - limits: counter-name prefix -> Limit, as with shards. A counter that no prefix fits has no
      limit.
    - thresholds: counter-name prefix -> Thresholds, as with shards. The service publishes their
      crossings. They may change. A threshold that follows a limit (of_ceiling, left) is refused
      where no counter with its prefix can have that side.
    - periods: counter-name prefix -> Keep, as with shards. The name of such a counter ends with a
      period ("llm:key:k1@2026-11"). It takes changes of that period alone, and the table deletes it
      afterwards.
    - unshared_limits: use limits and periods that the table's shape lacks, though nothing makes
      other processes use them.
    - allowed_lateness_ms: how long after the instant in its token a delta may arrive without
      becoming a stray.
    - keep_ms: how long a folded delta stays after every Region has its checkpoint; above
      read_time_max_ms. read_time_max_ms: a read that took longer starts again.
    - fold_min, fold_max: how many deltas one commit takes.
    - clean: False keeps folded deltas as items for ever; every settle then reads all of them again.
      clean_units_per_s: how many write units a second the clean of a lane takes at most, of the
      1,000 that its partition key has.
    - insert_only: put deltas and packs by PartiQL INSERT alone, so that a writer's role need not be
      able to replace any.
    - client: "boto3" or "fast": what the blocking classes make where you give them no client.

    A table that has a shape refuses other shards, limits and periods and fewer regions
    (SettingsMismatch), and the first use of a limit or of periods that it lacks.
    """

    table: str
    region: str
    regions: tuple[str, ...] = ()
    endpoint_url: str | None = None
    shards: Mapping[str, int] = field(default_factory=dict, hash=False)
    limits: Mapping[str, Limit] = field(default_factory=dict, hash=False)
    thresholds: Mapping[str, tuple[Threshold, ...]] = field(default_factory=dict, hash=False)
    periods: Mapping[str, Keep] = field(default_factory=dict, hash=False)
    allowed_lateness_ms: int = 10_000
    keep_ms: int = 600_000
    read_time_max_ms: int = 60_000
    fold_min: int = 32
    fold_max: int = 8_000
    clean: bool = True
    clean_units_per_s: int = 500
    insert_only: bool = False
    unshared_limits: bool = False
    client: ClientName = "boto3"

    def __post_init__(self) -> None:
        if type(self.regions) not in (tuple, list):  # a text would become a tuple of letters
            raise InvalidSettings(f"regions={shown(self.regions)} is not a tuple of Region names.")
        object.__setattr__(self, "regions", tuple(self.regions) or (self.region,))
        self._check_place()
        self._check_numbers()
        for name, shards in self._by_prefix("shards", "numbers"):
            if type(shards) is not int or not 1 <= shards <= SHARDS_MAX:
                raise InvalidSettings(
                    f"{name}={shown(shards)} is not an int from 1 to {SHARDS_MAX} for a prefix."
                )
        for name, limit in self._by_prefix("limits", "Limits"):
            if type(limit) is not Limit:
                raise InvalidSettings(
                    f"{name}={shown(limit)} is not a Limit(floor=, ceiling=, region=)."
                )
            if limit.region not in (None, *self.regions):
                raise InvalidSettings(
                    f"{name}: {shown(limit, 120)} begins in a Region that "
                    f"regions={shown(self.regions, 200)} lacks."
                )
        for name, keep in self._by_prefix("periods", "Keeps"):
            if type(keep) is not Keep:
                raise InvalidSettings(f"{name}={shown(keep)} is not a Keep(late=, keep=).")
        of_periods = (prefix for prefix in self.limits if longest(self.periods, prefix) is not None)
        for prefix in filter(is_dated, [*self.periods, *of_periods]):
            raise InvalidSettings(
                f"limits, periods: the prefix {prefix} names a period, and a period has the rules "
                "of its base. Nothing was written. Name the base; set_limit sets the limit of one "
                "period."
            )
        self._check_carried()
        for name, thresholds in self._by_prefix("thresholds", "tuples of Thresholds"):
            check_thresholds(name, thresholds, self.regions)
        object.__setattr__(
            self, "thresholds", {prefix: tuple(given) for prefix, given in self.thresholds.items()}
        )
        for prefix, given in self.thresholds.items():
            check_of_limits(
                f"thresholds[{shown(prefix)}]", given, self._limits_of_thresholds(prefix)
            )

    def _by_prefix(self, setting: str, what: str) -> Iterator[tuple[str, Any]]:
        """Copy a setting that maps prefixes.

        Yield how an error names each of its values, and the value.
        """
        given = getattr(self, setting)
        if not isinstance(given, Mapping):
            raise InvalidSettings(
                f"{setting}={shown(given)} is not a mapping from prefixes to {what}."
            )
        object.__setattr__(self, setting, dict(given))
        for prefix, said in given.items():
            if why := wrong_prefix(prefix):
                raise InvalidSettings(f"{setting}[{shown(prefix)}]: {why}")
            yield f"{setting}[{shown(prefix)}]", said

    def _check_carried(self) -> None:
        for prefix, keep in self.periods.items():
            own = rule_of(self.limits, prefix, None)
            below = [limit for other, limit in self.limits.items() if other.startswith(prefix)]
            limits = [*([own] if own is not None else []), *below]
            if keep.carry and (not limits or any(not limit.ceiling for limit in limits)):
                raise InvalidSettings(
                    f"periods[{shown(prefix)}]: carry={keep.carry} carries what is left of a "
                    "ceiling, but not every counter with this prefix has a ceiling above 0."
                )

    def _check_place(self) -> None:
        regions = shown(self.regions, 200)
        if not _fits(r"[a-zA-Z0-9_.-]{3,255}", self.table):
            raise InvalidSettings(
                f"table={shown(self.table)} is not a table name (3 to 255 letters, digits, _ . -)."
            )
        if not all(_fits(r"[a-z0-9-]{1,32}", region) for region in self.regions):
            alone = self.regions == (self.region,)
            what = f"region={shown(self.region)} is no" if alone else f"regions={regions} are not"
            raise InvalidSettings(
                f"{what} Region name{'' if alone else 's'}. Name one of AWS, such as eu-west-1."
            )
        if type(self.region) is not str or self.region not in self.regions:
            raise InvalidSettings(
                f"region={shown(self.region)} is not one of regions={regions}. Name one of them, "
                "or add it to them."
            )
        if len({*self.regions}) < len(self.regions):
            raise InvalidSettings(f"regions={regions} names a Region twice.")
        if self.endpoint_url is not None and not is_url(self.endpoint_url):
            url = shown(self.endpoint_url, 200)
            raise InvalidSettings(
                f"endpoint_url={url} is no URL such as http://localhost:8000 or "
                "https://example.com."
            )
        for region in self.regions if self.endpoint_url is None else ():
            if not _fits(_OF_AWS, region):
                raise InvalidSettings(
                    f"regions={regions}: AWS has no Region {region}. Only an endpoint_url allows "
                    "other names. Name one of AWS, such as eu-west-1."
                )

    def _check_numbers(self) -> None:
        for name in FLAGS:
            check_flag(name, getattr(self, name), InvalidSettings)
        client: object = self.client
        if type(client) is not str or client not in get_args(ClientName):
            raise InvalidSettings(f'client={shown(client)} is neither "boto3" nor "fast".')
        for name, least in LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= tokens.TIME_MS_MAX:
                raise InvalidSettings(
                    f"{name}={shown(value)} is not an int from {least} to {tokens.TIME_MS_MAX}."
                )
        if self.keep_ms <= self.read_time_max_ms:
            raise InvalidSettings(
                f"keep_ms={self.keep_ms} must be above read_time_max_ms={self.read_time_max_ms}: "
                "else clean could delete a delta that a read still needs."
            )
        if self.fold_min > self.fold_max:
            raise InvalidSettings(f"fold_min={self.fold_min} is above fold_max={self.fold_max}.")
        if self.fold_max > FOLD_MAX_LIMIT:
            raise InvalidSettings(
                f"fold_max={self.fold_max} is above {FOLD_MAX_LIMIT}: an item holds 400 KB."
            )

    def _limits_of_thresholds(self, prefix: str) -> list[Limit]:
        """The limits that counters with the thresholds of this prefix may have."""
        own = rule_of(self.limits, prefix, None)
        longer = [
            limit for name, limit in self.limits.items() if longest(self.thresholds, name) == prefix
        ]
        return longer if own is None else [own, *longer]

    @property
    def tells(self) -> bool:
        """Whether this Region publishes any threshold."""
        return any(
            self._is_told_here(threshold)
            for given in self.thresholds.values()
            for threshold in given
        )

    def _is_told_here(self, threshold: Threshold) -> bool:
        return (threshold.region or self.regions[0]) == self.region

    def plan(self, counter: str) -> Plan:
        """What these settings say of a counter. Raises InvalidCounter."""
        return plan_of(self, check_counter(counter))

    def shards_of(self, counter: str) -> int:
        """The number of shards of a counter. Raises InvalidCounter."""
        return self.plan(counter).shards

    def limit_of(self, counter: str) -> Limit | None:
        """The limit of a counter; None where it has none. Raises InvalidCounter."""
        return self.plan(counter).limit

    def keep_of(self, counter: str) -> Keep | None:
        """The Keep of a counter's periods; None where no prefix of periods fits its name. Raises
        InvalidCounter."""
        return self.plan(counter).keep

    def term_of(self, counter: str) -> Term | None:
        """The period of a counter; None of a base, and where no prefix of periods fits. Raises
        InvalidCounter."""
        return self.plan(counter).term

    def is_kept(self, counter: str, now_ms: int) -> bool:
        """Whether a counter can be read: not when it is a period whose items may retire. now_ms:
        since 1970. Raises InvalidCounter."""
        return self.plan(counter).is_kept(now_ms)

    def check_kept(self, counter: str, now_ms: int) -> None:
        """Raises PeriodOver for a counter that can no longer be read, and InvalidCounter. now_ms:
        since 1970."""
        self.plan(counter).check_kept(now_ms)

    def retires_s(self, counter: str) -> int:
        """The second since 1970 from which on the table may delete the counter's items; 0: never.
        Raises InvalidCounter."""
        return self.plan(counter).retires_s

    def thresholds_of(self, counter: str) -> tuple[Threshold, ...]:
        """The thresholds of a counter, whichever Region publishes them. Raises InvalidCounter."""
        return self.plan(counter).thresholds

    def told_here(self, counter: str) -> tuple[Threshold, ...]:
        """The thresholds of a counter that this Region publishes. Raises InvalidCounter."""
        return tuple(filter(self._is_told_here, self.plan(counter).thresholds))

    def lane_for(self, counter: str, token: str, region: str) -> Lane:
        """The lane of a change. Raises InvalidInput."""
        return self.plan(counter).lane_for(token, check_region(region))

    def lanes_of(self, counter: str, region: str | None = None) -> tuple[Lane, ...]:
        """Every lane of a counter, or those of one Region. Raises InvalidInput."""
        return self.plan(counter).lanes(None if region is None else check_region(region))

    def known(self, lane: Lane) -> Lane:
        """The lane with the time when it retires, and with the number of its counter's shards, so
        that a pack with tokens of another shard is reported as damage. A lane that nobody reads
        keeps its own.
        """
        plan = plan_of(self, check_lane(lane).counter)
        shards = plan.shards if lane.shard < plan.shards else lane.shards
        return replace(lane, shards=shards, retires_s=plan.retires_s)

    def reads(self, lane: Lane) -> bool:
        """Whether a reader of these settings looks at the deltas of a lane. Raises InvalidInput."""
        plan = plan_of(self, check_lane(lane).counter)
        return lane.region in self.regions and lane.shard < plan.shards and plan.limit is None

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **arguments: Any) -> Settings:
        """Settings from the arguments; for those not given, from the environment; else the
        defaults. Raises InvalidSettings.

        Variables: LEDGER_TABLE, AWS_REGION, LEDGER_REGIONS (with commas), LEDGER_ENDPOINT_URL,
        LEDGER_SHARDS (JSON, {"stock:": 4}), LEDGER_LIMITS (JSON, {"stock:": {"floor": 0}}),
        LEDGER_THRESHOLDS (JSON, {"stock:": [{"below": 10}]}), LEDGER_PERIODS (JSON, {"llm:":
        {"late_s": 1296000, "keep_s": 34560000, "carry": 0}}; with the "anchor" of windows, such as
        "2026-11-28T05:00:00Z", where they have one), LEDGER_CLEAN (true or false),
        LEDGER_ALLOWED_LATENESS_MS, LEDGER_KEEP_MS, LEDGER_READ_TIME_MAX_MS, LEDGER_FOLD_MIN,
        LEDGER_FOLD_MAX, LEDGER_CLEAN_UNITS_PER_S, LEDGER_INSERT_ONLY and LEDGER_UNSHARED_LIMITS
        (true or false), LEDGER_CLIENT (boto3 or fast).
        """
        given: object = os.environ if environ is None else environ
        if not isinstance(given, Mapping):
            raise InvalidSettings(f"environ is a mapping such as os.environ, not {shown(given)}.")
        lacking = [setting.name for setting in fields(cls) if setting.name not in arguments]
        arguments |= variables.read(given, lacking)  # Rule 2: so an argument wins
        for name, variable in (("table", "LEDGER_TABLE"), ("region", REGION_FROM)):
            if name not in arguments:
                raise InvalidSettings(f"{name} is not set: pass {name}= or set {variable}.")
        return cls(**arguments)


_plans: dict[int, Callable[[str], Plan]] = {}


def plan_of(settings: Settings, name: str) -> Plan:
    """The plan of a name that was checked: of a counter, or of a prefix as if it were one."""
    return plans_of(settings)(name)


def plans_of(settings: Settings) -> Callable[[str], Plan]:
    """`plan_of` these settings, for callers that ask it often."""
    # By identity: many Settings may differ in their mappings alone, which their hash leaves out.
    # What is kept refers to its Settings, so nothing else has that id meanwhile.
    plans = _plans.get(id(settings))
    if plans is None:
        if len(_plans) >= SETTINGS_MAX:
            _plans.clear()
        plans = _plans[id(settings)] = lru_cache(PLANS_MAX)(partial(_plan, settings))
    return plans


def _plan(settings: Settings, name: str) -> Plan:
    keep = rule_of(settings.periods, name, None)
    term = None if keep is None else term_of(name, keep)
    return Plan(
        name,
        settings.regions,
        rule_of(settings.shards, name, 1),
        rule_of(settings.limits, name, None),
        rule_of(settings.thresholds, name, ()),
        keep,
        term,
        0 if term is None else term.retires_s,
    )


def check_settings(settings: object) -> Settings:
    """`settings` itself; raises InvalidSettings for anything else than Settings."""
    if not isinstance(settings, Settings):
        raise InvalidSettings(
            f"settings is a Settings(table=, region=, ...), not {shown(settings)}."
        )
    return settings


def check_lane(lane: object) -> Lane:
    if not isinstance(lane, Lane):
        raise InvalidInput(f"A lane is a Lane(region, shard, counter), not {shown(lane)}.")
    return lane


def _fits(pattern: str, text: object) -> bool:
    return type(text) is str and re.fullmatch(pattern, text) is not None
