"""What of a process's settings contradicts the table's shape: sentences with both values and what to do.

The rules are those of shape.py; here they are in words, without a request.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from ledger.errors import shown
from ledger.limit import Shape
from ledger.periods.keep import SECOND, Keep
from ledger.settings import Settings

SHOWN_MAX = 200
HOUR_MS, WEEK_MS = 3_600_000, 7 * 86_400_000


def of_periods(settings: Settings) -> list[str]:
    """The prefixes of shards that are those of a period."""
    return [prefix for prefix in settings.shards if settings.term_of(prefix) is not None]


def too_late(settings: Settings, shape: Shape, now_ms: int) -> list[str]:
    """The shards that would be those of a period in which somebody may have written."""
    wrong = []
    for prefix in settings.shards.keys() - shape.shards.keys():
        term = settings.term_of(prefix)
        early_ms = WEEK_MS if term is not None and term.span.unit == "year" else 0  # its first week began before it
        if term is not None and term.first_ms - early_ms <= now_ms + HOUR_MS:
            wrong.append(
                f"shards[{prefix!r}]: that period has begun, or begins within the hour somewhere, and may have changes "
                "in other lanes. Give the shards to a later one."
            )
    return sorted(wrong)


def mismatches(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings contradicts the shape: sentences with both values and what to do."""
    wrong = unlike(settings, shape)
    if settings.region not in shape.regions:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process region={settings.region!r}: nobody need read what "
            "is added there. Name a Region of the table (AWS_REGION), or add this one first (ledgerctl init, make "
            "deploy)."
        )
    return wrong


def unlike(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings no process may have, nor any later shape."""
    wrong = []
    to_come = {*of_periods(settings)}
    if {**settings.shards, **shape.shards} != dict(
        settings.shards
    ) or settings.shards.keys() - to_come - shape.shards.keys():
        theirs, ours = (shown(dict(sorted(each.shards.items())), SHOWN_MAX) for each in (shape, settings))
        wrong.append(
            f"The table has shards={theirs}, this process shards={ours}: it would add where nobody reads. Start it "
            "with the table's (LEDGER_SHARDS); the number of a counter's shards never changes."
        )
    lacking = [region for region in shape.regions if region not in settings.regions]
    if lacking:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process regions={settings.regions!r}: it would not see "
            f"what is added in {' '.join(lacking)}. Name every Region of the table (LEDGER_REGIONS)."
        )
    for prefix, limit in sorted(shape.limits.items()):
        if settings.limits.get(prefix) != limit:
            wrong.append(
                f"The table has limits[{prefix!r}]={limit}, this process {settings.limits.get(prefix)}: it would write "
                "what no gate decides, or decide otherwise. Start it with the table's (LEDGER_LIMITS). A prefix keeps "
                "its limit; that of a counter is changed by set_limit."
            )
    for prefix, keep in sorted(shape.periods.items()):
        own = settings.periods.get(prefix)
        if own is None or (own.late, own.keep) != (keep.late, keep.keep):
            wrong.append(
                f"The table has periods[{prefix!r}]={_said(keep)}, this process {_said(own)}: what retires by one "
                "would be read by the other. Start it with the table's (LEDGER_PERIODS); late and keep of a prefix "
                "never change."
            )
    return wrong


def unfit(settings: Settings, counters: Iterable[str]) -> str:
    """Why a table with multi-Region strong consistency does not take changes of these counters; "" where it does."""
    for counter in counters:
        for lacks, what, why in (
            (settings.limit_of(counter) is None, "no limit", "no transactions, so its changes would never be folded"),
            (settings.keep_of(counter) is not None, "a period", "no time to live, so its items would never retire"),
        ):
            if lacks:
                return (
                    f"The counter {counter!r} has {what}, and the table multi-Region strong consistency: {why}. Only "
                    "counters with a limit and without periods work there. Count it in a table of the default mode. "
                    "Nothing was written."
                )
    return ""


def _of_keep(keep: Keep) -> dict[str, int]:
    return {"late_s": keep.late // SECOND, "keep_s": keep.keep // SECOND}


def _said(keep: Keep | None) -> str:
    return "none" if keep is None else json.dumps(_of_keep(keep))


def lacking(rules: Sequence[tuple[str, str]], settings: Settings) -> str:
    """Why a process may not use a limit or periods that the shape lacks. rules: of which kind, and the prefix."""
    values = {
        "limits": {
            prefix: {name: each for name, each in asdict(limit).items() if each is not None}
            for prefix, limit in settings.limits.items()
        },
        "periods": {prefix: _of_keep(keep) for prefix, keep in settings.periods.items()},
        "shards": dict(settings.shards),
    }
    variables = " ".join(
        f"LEDGER_{kind.upper()}='{json.dumps(values[kind])}'" for kind in dict.fromkeys(kind for kind, _ in rules)
    )
    names = ", ".join(f"{kind}[{prefix!r}]" for kind, prefix in rules)
    return (
        f"The table's shape lacks {names}: a process without them is not refused, and adds past them. Run "
        f"`ledgerctl init` with {variables} and else this process's settings, or deploy with them. "
        "To use them all the same: Settings(unshared_limits=True), LEDGER_UNSHARED_LIMITS=true. Nothing was "
        "written."
    )
