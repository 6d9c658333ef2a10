"""`doctor` on tables of every shape, and `init`, which makes one that it has nothing to say
about.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

from lab.engines.ministack import Engine
from ledger.core import items, tokens
from ledger.core.limit import Limit, Shape
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledger.lane import directory
from ledgerctl.surroundings import Surroundings
from tests.ledgerctl.support import (
    ENVIRON,
    GOOD,
    NOW_MS,
    A,
    Answer,
    B,
    Clock,
    aws,
    ctl,
    on_engine,
    refusal,
    refused,
    signed_in,
)
from tests.ledgerctl.support import TABLE as TWO

TABLE = {**TWO, "Replicas": []}
ANSWERS = GOOD | {
    "DescribeTable": {"Table": TABLE},
    "Scan": {"Items": []},
    "Query": {"Items": []},
    "BatchGetItem": {"Responses": {}},
    "GetItem": {"Item": items.shape_item(Shape((A,), {}))},
}
NEVER_WRITTEN = refusal("ConditionalCheckFailedException")
NOT_YET = refusal("ContinuousBackupsUnavailableException", "Backups are being enabled")
REFUSED = refusal("AccessDeniedException")
OFF = {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}}
STRONG = {"Table": TABLE | {"MultiRegionConsistency": "STRONG"}}
EXPIRES = {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}}
NO_STREAM = {"StreamSpecification": {"StreamEnabled": False}}
KEYED_OTHERWISE = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
LIMITS = '{"stock:": {"floor": 0}}'
LIMITED_DAYS = {
    "LEDGER_LIMITS": LIMITS,
    "LEDGER_PERIODS": '{"stock:": {"late_s": 60, "keep_s": 60}}',
}
NOTED = items.shape_item(Shape((A,), {}, limits={"stock:": Limit(floor=0)}, is_strong=True))
STRONG_NOTED = {"DescribeTable": STRONG, "GetItem": {"Item": NOTED}}
BETWEEN = "consistency between Regions"
LANES = "regions and shards against lanes"
BOTH = {"LEDGER_REGIONS": f"{A},{B}"}


def answering(**changed: Any) -> Answer:
    """A table that is as it should be, apart from some answers; an iterator gives another one
    each time.
    """
    answers = ANSWERS | changed

    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        if operation in ("PutItem", "DeleteItem", "UpdateItem"):
            assert (
                asked["ConditionExpression"] == "attribute_exists(pk) AND attribute_not_exists(pk)"
            )
        given = answers.get(operation, NEVER_WRITTEN)
        given = (
            next(given)
            if isinstance(given, Iterator)
            else given(asked)
            if callable(given)
            else given
        )
        return given if isinstance(given, tuple) else (200, given)

    return answer


def world(environ: dict[str, str] | None = None, **changed: Any) -> Surroundings:
    return aws(answering(**changed), ENVIRON | (environ or {}))


def findings(made: Surroundings) -> tuple[int, dict[str, str]]:
    """The exit code, and the level of each finding that is not fine."""
    said = ctl(made, "doctor", "--json")
    for each in said.documents:
        assert (each["level"] == "ok") == (each["remedy"] == "")
    return said.code, {
        each["what"]: each["level"] for each in said.documents if each["level"] != "ok"
    }


def said(made: Surroundings) -> str:
    return " ".join(ctl(made, "doctor").out.split())


def item_key(pk: str, sk: str = "x") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def test_a_table_as_it_should_be_has_no_findings() -> None:
    assert findings(world()) == (0, {})
    assert said(world()).endswith("24 ok, 0 warnings, 0 errors")


def test_what_loses_changes_fails_and_the_unseen_is_to_know() -> None:
    damaged = {"Item": {**items.shape_item(Shape((A,), {})), "regions": {"S": A}}}
    unread = {"Items": [item_key(pk) for pk in ("delta#eu-west-1#3#c", "fold#us-east-1#0#c", "m")]}
    narrow = (f"{A} table", LANES, f"may clean {A}", f"may rebuild {A}", "may list, compact all")
    of_narrow = dict.fromkeys(("Scan", "DeleteItem", "DescribeTable"), REFUSED)
    cases: tuple[tuple[dict[str, str], dict[str, Any], int, dict[str, str]], ...] = (
        *(
            (
                {},
                {"DescribeTable": {"Table": TABLE | changed}},
                int(level == "fail"),
                {f"{A} {what}": level},
            )
            for changed, level, what in (
                (KEYED_OTHERWISE, "fail", "keys"),
                (
                    {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
                    "fail",
                    "stream",
                ),
                (NO_STREAM, "warn", "stream"),  # of the only Region
                ({"DeletionProtectionEnabled": False}, "warn", "deletion protection"),
                ({"GlobalSecondaryIndexes": [{"IndexName": "by-change"}]}, "warn", "indexes"),
                ({"TableStatus": "UPDATING"}, "warn", "table"),
            )
        ),
        ({}, {"DescribeTable": {"Table": TWO}}, 0, {"regions for replicas": "warn"}),
        (BOTH, {}, 1, {"replicas for regions": "fail"}),
        (
            BOTH,
            {"DescribeTable": {"Table": TWO | NO_STREAM}},
            1,
            {f"{at} stream": "fail" for at in (A, B)},
        ),
        ({}, {"DescribeTable": STRONG}, 1, {BETWEEN: "fail", "shape": "warn"}),
        ({"LEDGER_LIMITS": LIMITS}, STRONG_NOTED, 0, {BETWEEN: "warn"}),
        (LIMITED_DAYS, STRONG_NOTED, 1, {BETWEEN: "fail", f"{A} periods": "warn", "shape": "warn"}),
        ({}, {"DescribeTimeToLive": EXPIRES}, 1, {f"{A} time to live": "fail"}),
        ({}, {"DescribeContinuousBackups": OFF}, 0, {f"{A} point-in-time recovery": "warn"}),
        ({}, {"GetItem": {}}, 0, {"shape": "warn"}),
        ({"LEDGER_LIMITS": LIMITS}, {}, 0, {"shape": "warn"}),
        ({}, {"GetItem": damaged}, 1, {"shape": "fail"}),
        ({}, {"GetItem": REFUSED}, 0, {"shape": "warn", f"may read histories in {A}": "warn"}),
        ({}, {"Scan": unread}, 1, {LANES: "fail", "directory of lanes": "warn"}),
        ({}, of_narrow, 0, dict.fromkeys(narrow, "warn")),
        *(
            ({}, {"GetItem": {"Item": items.shape_item(there)}}, 1, {"shape": "fail"})
            for there in (Shape((A,), {"stock:": 4}), Shape((A, B), {}), Shape((B,), {}))
        ),
    )
    for environ, changed, code, found in cases:
        assert findings(world(environ, **changed)) == (code, found)


def test_the_clock_is_held_against_the_date_header() -> None:
    for skew_ms, level, says in (
        (0, None, "within two seconds of AWS"),
        (-1_500, None, "within two seconds of AWS"),
        (5_000, "warn", "5.0 s ahead of AWS"),
        (-60_000, "fail", "60.0 s behind AWS"),
    ):
        made = replace(world(), clock=Clock(NOW_MS + 500 + skew_ms))
        assert findings(made)[1].get("clock") == level
        assert f"clock: {says}" in said(made)


def narrow(*refused: tuple[str, str]) -> Answer:
    """A role of two Regions that is refused operations on partition keys."""

    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        if any(operation == action and prefix in json.dumps(asked) for action, prefix in refused):
            return REFUSED
        return answering(DescribeTable={"Table": TWO})(operation, asked)

    return answer


def test_a_right_is_tried_where_it_is_needed() -> None:
    histories = {f"may read histories in {B}": "warn"}
    blind = narrow(("Query", "delta#"), ("Query", "fold#"), ("BatchGetItem", "fold#"))
    nothing: Answer = lambda *_: refusal("ResourceNotFoundException")  # noqa: E731
    for there, found in (
        (narrow(("GetItem", "fold#")), (0, histories | {f"may clean {A}, asking {B}": "warn"})),
        (blind, (0, histories | {f"may read in {B}": "warn"})),
        (nothing, (1, {f"{B} table": "fail"})),  # named once
    ):
        assert findings(aws(narrow(), ENVIRON | BOTH, there)) == found
    for operation, prefix, what in (
        ("Query", "fold#", f"may read histories in {A}"),
        ("Query", "delta#", f"may read in {A}"),
        ("DeleteItem", "fold#", f"may rebuild {A}"),
        ("DeleteItem", "delta#", f"may clean {A}"),
        ("PutItem", "fold#", f"may compact {A}"),
        ("PutItem", "delta#", "may add"),
    ):
        assert findings(aws(narrow((operation, prefix)), ENVIRON | BOTH))[1].get(what) == "warn"
    assert ctl(aws(nothing), "doctor").code == 2


def test_doctor_stops_where_nobody_signed_in() -> None:
    nobody = replace(world(), session=lambda _: signed_in(key=None))
    refused(ctl(nobody, "doctor"), 3, "Unable to locate credentials", "Give credentials: --profile")
    for code, remedy in (
        ("UnrecognizedClientException", "Give credentials that AWS accepts"),
        ("ExpiredTokenException", "Sign in again"),
    ):
        unknown = aws(lambda *_, code=code: refusal(code))
        refused(ctl(unknown, "doctor"), 3, remedy)


def test_a_right_that_nobody_could_try_is_not_called_refused() -> None:
    unknown: Answer = lambda *_: refusal("UnrecognizedClientException")  # noqa: E731
    elsewhere = aws(narrow(), ENVIRON | BOTH, unknown)
    code, found = findings(elsewhere)
    assert (code, found[f"may read in {B}"], found[f"{B} table"]) == (1, "fail", "warn")
    text = said(elsewhere)
    assert "Give credentials that AWS accepts" in text
    assert "AWS refuses" not in text
    assert "Use a role that may" not in text
    busy = said(world(Scan=refusal("ThrottlingException")))
    assert "Run it again" in busy
    assert "Ignore this" not in busy


def test_doctor_that_found_nothing_ok_fails() -> None:
    may_nothing = ctl(aws(lambda *_: REFUSED), "doctor")
    assert may_nothing.out.endswith("0 ok, 14 warnings, 0 errors\n")
    assert may_nothing.code == 1


def test_lanes_are_held_against_the_directory() -> None:
    gate = gates.gate_key(Lane(A, 0, "seats:gig"))
    deltas = [
        item_key(items.delta_pk(Lane(A, 0, f"c{n}")), tokens.last_of(NOW_MS)) for n in range(101)
    ]

    def listed(asked: Any) -> Any:
        keys = asked["RequestItems"]["counters"]["Keys"]
        return {
            "Responses": {"counters": [key for key in keys if key["pk"]["S"].startswith("lane#")]}
        }

    for lacking, lane in (
        (deltas[0], "eu-west-1#0#c0"),
        (item_key(*gate), "eu-west-1#0#seats:gig"),
    ):
        lacks = said(world(Scan={"Items": [lacking]}))
        assert (
            f"directory of lanes: 1 of 1 lanes of 1 counters are not in it, such as {lane}" in lacks
        )
        assert "`ledgerctl compact` in each Region lists them" in lacks
    rest = "in the part that this read; `ledgerctl list --scan` reads the whole table"
    for count, more, whole in (
        (100, {}, True),
        (101, {}, False),
        (1, {"LastEvaluatedKey": deltas[0]}, False),
    ):
        there = said(world(Scan={"Items": deltas[:count], **more}, BatchGetItem=listed))
        seen = min(count, 100)
        assert (f"has each of {seen} lanes of {seen} counters" in there, rest in there) == (
            True,
            not whole,
        )


# -- init


def test_init_makes_a_table_that_doctor_finds_fine_and_grows_it(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name, client = next(table_names), engine.client(A)
    keys = {"KeySchema": TABLE["KeySchema"], "AttributeDefinitions": TABLE["AttributeDefinitions"]}
    client.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **keys)
    one, both = on_engine(engine, name, A), on_engine(engine, name, A, B)
    limited = on_engine(engine, name, A, B, LEDGER_LIMITS=LIMITS)
    (made,) = ctl(one, "init", "--json").documents
    assert (made["table"], made["regions"]) == (name, [A])
    assert (made["steps"][0], made["steps"][-1]) == (
        f"{A}: turned the stream on",
        f"{A}: wrote the shape",
    )
    (grown,) = ctl(both, "init", "--json").documents
    assert {f"{B}: made a replica", f"{A}: added new Regions, limits or periods to the shape"} <= {
        *grown["steps"]
    }
    assert said(both).endswith("0 warnings, 0 errors")
    assert ctl(both, "init").out.endswith(
        "is there already in eu-west-1 us-east-1: nothing to do\n"
    )
    refused(ctl(one, "get", "c"), 2, "LEDGER_REGIONS")
    assert ctl(both, "add", "stock:1", "-6").code == 0
    assert "lacks limits stock:; nothing refuses a process without them" in said(limited)
    client.put_item(TableName=name, Item=directory.item_of(Lane(A, 0, "stock:1")))
    refused(ctl(limited, "init"), 2, "counters stock:1 have changes")
    seats = on_engine(engine, name, A, B, LEDGER_LIMITS=LIMITS.replace("stock", "seats"))
    assert (ctl(seats, "init").code, ctl(both, "add", "seats:1", "-6").code) == (0, 2)


def test_inits_help_says_what_it_stores_and_turns_on() -> None:
    text = " ".join(ctl(world(), "init", "--help").out.split())
    for word in ("LEDGER_LIMITS", "LEDGER_PERIODS", "LEDGER_SHARDS", "point-in-time recovery"):
        assert word in text


def test_init_refuses_what_doctor_fails_and_changes_nothing() -> None:
    for changed, code, says in (
        ({"DescribeTimeToLive": EXPIRES}, 1, "time to live: enabled"),
        ({"DescribeTable": STRONG}, 1, "strong"),
        (
            {"DescribeTable": {"Table": TABLE | KEYED_OTHERWISE}},
            1,
            "does not have the library's shape",
        ),
        ({"GetItem": {"Item": items.shape_item(Shape((A,), {"stock:": 4}))}}, 2, "shards"),
        ({"GetItem": {"Item": items.shape_item(Shape((B,), {}))}}, 2, "us-east-1"),
    ):
        refused(ctl(world(**changed), "init"), code, says, "Nothing was changed")


def test_init_notes_the_mode_of_the_table() -> None:
    there: dict[str, Any] = {}

    def init(table: Any) -> list[bool]:
        noted: list[bool] = []

        def answer(operation: str, asked: Any) -> tuple[int, Any]:
            if operation == "PutItem":
                there["Item"] = asked["Item"]
                noted.append(items.shape_of(asked["Item"]).is_strong)
                return 200, {}
            return answering(DescribeTable=table, GetItem=there)(operation, asked)

        assert ctl(aws(answer, ENVIRON | {"LEDGER_LIMITS": LIMITS}), "init").code == 0
        return noted

    restored = {"Table": TABLE}
    assert [init(table) for table in (STRONG, STRONG, restored, restored)] == [
        [True],
        [],
        [False],
        [],
    ]


def test_init_waits_for_recovery_and_replicas() -> None:
    pauses: list[float] = []
    made = world(
        DescribeContinuousBackups=OFF, UpdateContinuousBackups=iter([NOT_YET, NOT_YET, (200, {})])
    )
    done = ctl(replace(made, pause=pauses.append), "init")
    assert (done.code, done.out.splitlines()[0], len(pauses)) == (
        0,
        f"{A}: point-in-time recovery is on",
        2,
    )
    for answer, says in ((NOT_YET, "Backups are being enabled"), (REFUSED, "may do")):
        failed = ctl(world(DescribeContinuousBackups=OFF, UpdateContinuousBackups=answer), "init")
        refused(failed, 3, f"{A}: point-in-time recovery is not on", says)

    pauses.clear()
    states = (
        {"Table": TABLE | {"Replicas": [{"RegionName": B, "ReplicaStatus": s}]}}
        for s in ("CREATING", "ACTIVE")
    )
    creating, active = states
    both = {"Item": items.shape_item(Shape((A, B), {}))}
    made = world(BOTH, DescribeTable=chain([creating] * 4, repeat(active)), GetItem=both)
    assert ctl(replace(made, pause=pauses.append), "init").code == 0
    assert pauses
