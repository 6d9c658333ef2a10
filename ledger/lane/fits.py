"""The sentences that say where a process's settings contradict the table's shape, with both values
and what to do.

The rules are those of shape.py; this file puts them into words, without a request.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from ledger.core.errors import shown
from ledger.core.keep import SECOND, Keep
from ledger.core.limit import Limit, Shape
from ledger.core.settings import Settings, plan_of

SHOWN_MAX = 200
Rules = tuple[Mapping[str, Limit], Mapping[str, Keep], Mapping[str, int]]
"""Limits, periods and shards, by prefix."""
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
            "nobody reads, or read only some of the lanes. Start it with "
            f"{_variables(_together(settings, shape), 'shards')} as the table has it; the number "
            "of a counter's shards never changes."
        )
    lacking = [region for region in shape.regions if region not in settings.regions]
    if lacking:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process regions={settings.regions!r}: "
            f"it would not see what is added in {' '.join(lacking)}. Name every Region of the "
            "table (LEDGER_REGIONS)."
        )
    if limits := [
        f"limits[{prefix!r}]={limit}, this process {settings.limits.get(prefix)}"
        for prefix, limit in sorted(shape.limits.items())
        if settings.limits.get(prefix) != limit
    ]:
        wrong.append(
            f"The table has {'; '.join(limits)}: it would bypass the limit, or apply another one. "
            f"Start it with {_variables(_together(settings, shape), 'limits')} as the table has "
            "it. A prefix keeps its limit; set_limit changes the limit of a single counter."
        )
    return wrong + _unlike_periods(settings, shape)


def _unlike_periods(settings: Settings, shape: Shape) -> list[str]:
    lengths, anchors = list[str](), list[str]()
    for prefix, keep in sorted(shape.periods.items()):
        own = settings.periods.get(prefix)
        both = f"periods[{prefix!r}]={_said(keep)}, this process {_said(own)}"
        if own is None or (own.late, own.keep) != (keep.late, keep.keep):
            lengths.append(both)
        elif own.anchor != keep.anchor:
            anchors.append(both)
    return [
        f"The table has {'; '.join(differing)}: {harm}. Start it with "
        f"{_variables(_together(settings, shape), 'periods')} as the table has it; {stays}."
        for differing, harm, stays in (
            (
                lengths,
                "it would read periods whose items the table deletes, or keep items longer",
                "late and keep of a prefix never change",
            ),
            (
                anchors,
                "its windows would begin elsewhere, beside those of others",
                "the anchor of a prefix never changes",
            ),
        )
        if differing
    ]


def _together(settings: Settings, shape: Shape) -> Rules:
    """The rules that a process may have: the table's, and its own that the table lacks."""
    own = {prefix: settings.shards[prefix] for prefix in of_periods(settings)}
    carries = {prefix: keep.carry for prefix, keep in settings.periods.items()}
    theirs = {
        prefix: replace(keep, carry=carries.get(prefix, 0))
        for prefix, keep in shape.periods.items()
    }
    return (
        {**settings.limits, **shape.limits},
        {**settings.periods, **theirs},
        {**own, **shape.shards},
    )


def _variables(rules: Rules, *kinds: str) -> str:
    """The variables of these kinds of rules, ready to paste into a shell."""
    limits, periods, shards = rules
    values: dict[str, Mapping[str, object]] = {
        "limits": {
            prefix: {name: value for name, value in asdict(limit).items() if value is not None}
            for prefix, limit in limits.items()
        },
        "periods": {
            prefix: _of_keep(keep) | ({"carry": keep.carry} if keep.carry else {})
            for prefix, keep in periods.items()
        },
        "shards": dict(shards),
    }
    # a prefix may have the shell's quote, which JSON can write in another way
    texts = ((kind, json.dumps(values[kind]).replace("'", r"\u0027")) for kind in kinds)
    return " ".join(f"LEDGER_{kind.upper()}='{text}'" for kind, text in texts)


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
    variables = _variables(
        (settings.limits, settings.periods, settings.shards), *dict.fromkeys(k for k, _ in rules)
    )
    names = ", ".join(f"{kind}[{prefix!r}]" for kind, prefix in rules)
    return (
        f"The table's shape lacks {names}, so nothing stops a process that runs without them and "
        f"adds past them. Nothing was written. Run `ledgerctl init` with {variables} and otherwise "
        "this process's settings, or deploy with them. To use them without the shape's protection: "
        "Settings(unshared_limits=True), LEDGER_UNSHARED_LIMITS=true."
    )
