"""The sentences that say where a process's settings contradict the table's shape, with both values
and what to do.

The rules are those of shape.py; this file puts them into words, without a request.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from ledger.core.errors import shown
from ledger.core.keep import SECOND, Keep
from ledger.core.limit import Shape
from ledger.core.settings import Settings, plan_of

SHOWN_MAX = 200
HOUR_MS, WEEK_MS = 3_600_000, 7 * 86_400_000


def of_periods(settings: Settings) -> list[str]:
    """The prefixes of shards that name a period."""
    return [prefix for prefix in settings.shards if plan_of(settings, prefix).term is not None]


def too_late(settings: Settings, shape: Shape, now_ms: int) -> list[str]:
    """A sentence for each prefix of shards whose period may already have changes.

    Shards grow by those of a period that begins in more than an hour: `at` is five minutes ahead at
    most, so nobody can have written there. Processes get them first and the shape last, as with
    limits.
    """
    wrong = []
    for prefix in settings.shards.keys() - shape.shards.keys():
        term = plan_of(settings, prefix).term
        # its first week began before it
        early_ms = WEEK_MS if term is not None and term.span.unit == "year" else 0
        if term is not None and term.first_ms - early_ms <= now_ms + HOUR_MS:
            wrong.append(
                f"shards[{prefix!r}]: that period has begun, or begins within the hour in some "
                "time zone, so its lanes may have changes already. Set the shards of a later "
                "period instead."
            )
    return sorted(wrong)


def mismatches(settings: Settings, shape: Shape) -> list[str]:
    """A sentence for each contradiction between the settings and the shape."""
    wrong = unlike(settings, shape)
    if settings.region not in shape.regions:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process region={settings.region!r}: "
            "other processes may miss what is added there. Name a Region of the table "
            "(AWS_REGION), or add this one first (ledgerctl init, make deploy in a clone)."
        )
    return wrong


def unlike(settings: Settings, shape: Shape) -> list[str]:
    """A sentence for each setting that neither a process nor a later shape may have."""
    wrong = []
    to_come = {*of_periods(settings)}
    if {**settings.shards, **shape.shards} != dict(
        settings.shards
    ) or settings.shards.keys() - to_come - shape.shards.keys():
        theirs, ours = (
            shown(dict(sorted(side.shards.items())), SHOWN_MAX) for side in (shape, settings)
        )
        wrong.append(
            f"The table has shards={theirs}, this process shards={ours}: it would add where "
            "nobody reads, or read only some of the lanes. Start it with the table's "
            "(LEDGER_SHARDS); the number of a counter's shards never changes."
        )
    lacking = [region for region in shape.regions if region not in settings.regions]
    if lacking:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process regions={settings.regions!r}: "
            f"it would not see what is added in {' '.join(lacking)}. Name every Region of the "
            "table (LEDGER_REGIONS)."
        )
    for prefix, limit in sorted(shape.limits.items()):
        if settings.limits.get(prefix) != limit:
            wrong.append(
                f"The table has limits[{prefix!r}]={limit}, this process "
                f"{settings.limits.get(prefix)}: it would bypass the limit, or apply another one. "
                "Start it with the table's (LEDGER_LIMITS). A prefix keeps its limit; set_limit "
                "changes the limit of a single counter."
            )
    for prefix, keep in sorted(shape.periods.items()):
        own = settings.periods.get(prefix)
        if own is None or (own.late, own.keep) != (keep.late, keep.keep):
            wrong.append(
                f"The table has periods[{prefix!r}]={_said(keep)}, this process {_said(own)}: it "
                "would read periods whose items the table deletes, or keep items longer. Start it "
                "with the table's (LEDGER_PERIODS); late and keep of a prefix never change."
            )
        elif own.anchor != keep.anchor:
            wrong.append(
                f"The table has periods[{prefix!r}]={_said(keep)}, this process {_said(own)}: its "
                "windows would begin elsewhere, beside those of others. Start it with the table's "
                "(LEDGER_PERIODS); the anchor of a prefix never changes."
            )
    return wrong


def why_not_strong(settings: Settings, counters: Iterable[str]) -> str:
    """Why a table with multi-Region strong consistency does not take changes of these counters;
    "" where it does.
    """
    for counter in counters:
        plan = plan_of(settings, counter)
        for lacks, what, why in (
            (
                plan.limit is None,
                "no limit",
                "no transactions, so no compactor could fold its changes",
            ),
            (
                plan.keep is not None,
                "a period",
                "no time to live, so the items of a period would stay for ever",
            ),
        ):
            if lacks:
                return (
                    f"The counter {counter!r} has {what}, and the table multi-Region strong "
                    f"consistency: {why}. Nothing was written. Only counters with a limit and "
                    "without periods work there. Use a table of the default mode for this one."
                )
    return ""


def _of_keep(keep: Keep) -> dict[str, int | str]:
    said: dict[str, int | str] = {"late_s": keep.late // SECOND, "keep_s": keep.keep // SECOND}
    return said if keep.anchor is None else {**said, "anchor": f"{keep.anchor:%Y-%m-%dT%H:%MZ}"}


def _said(keep: Keep | None) -> str:
    return "none" if keep is None else json.dumps(_of_keep(keep))


def lacking(rules: Sequence[tuple[str, str]], settings: Settings) -> str:
    """Why a process may not use limits or periods that the shape lacks.

    rules: the kind and the prefix of each.
    """
    values = {
        "limits": {
            prefix: {name: value for name, value in asdict(limit).items() if value is not None}
            for prefix, limit in settings.limits.items()
        },
        "periods": {prefix: _of_keep(keep) for prefix, keep in settings.periods.items()},
        "shards": dict(settings.shards),
    }
    variables = " ".join(
        f"LEDGER_{kind.upper()}='{json.dumps(values[kind])}'"
        for kind in dict.fromkeys(kind for kind, _ in rules)
    )
    names = ", ".join(f"{kind}[{prefix!r}]" for kind, prefix in rules)
    return (
        f"The table's shape lacks {names}, so nothing stops a process that runs without them and "
        f"adds past them. Nothing was written. Run `ledgerctl init` with {variables} and otherwise "
        "this process's settings, or deploy with them. To use them without the shape's protection: "
        "Settings(unshared_limits=True), LEDGER_UNSHARED_LIMITS=true."
    )
