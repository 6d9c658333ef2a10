"""`doctor` on tables of every shape, and `init`, which makes one that it has nothing to say about."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import Settings, items, tokens
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.limit import Shape
from ledger.values import Checkpoint, Lane
from ledgerctl import shape
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import ENVIRON, NOW_MS, A, Answer, B, aws, ctl, refusal, signed_in

TABLE: dict[str, Any] = {
    "TableName": "counters",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "DeletionProtectionEnabled": True,
}
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}
GOOD: dict[str, Any] = {
    "DescribeTable": {"Table": TABLE},
    "DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
    "DescribeContinuousBackups": {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED", **BACKUPS}},
    "Scan": {"Items": []},
    "Query": {"Items": []},
    "BatchGetItem": {"Responses": {}},
    "GetItem": {"Item": items.shape_item(Shape((A,), {}))},
}
NEVER_WRITTEN = refusal("ConditionalCheckFailedException")
NOT_YET = refusal("ContinuousBackupsUnavailableException", "Backups are being enabled")


def key_of(pk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": "x"}}


def answering(**changed: Any) -> Answer:
    """A table that is as it should be, apart from some answers; an iterator gives another one each time."""
    answers = GOOD | changed

    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        if operation in ("PutItem", "DeleteItem") and operation not in changed:
            assert asked["ConditionExpression"] == "attribute_exists(pk) AND attribute_not_exists(pk)"
            return NEVER_WRITTEN
        given = answers[operation]
        if isinstance(given, Iterator):
            given = next(given)
        return given if isinstance(given, tuple) else (200, given)

    return answer


def world(environ: dict[str, str] | None = None, **changed: Any) -> Surroundings:
    return aws(answering(**changed), ENVIRON | (environ or {}))


def findings(made: Surroundings) -> tuple[int, dict[str, str]]:
    """The exit code, and the level of each finding that is not fine."""
    said = ctl(made, "doctor", "--json")
    documents = said.documents
    for each in documents:
        assert (each["level"] == "ok") == (each["remedy"] == "")
    return said.code, {each["what"]: each["level"] for each in documents if each["level"] != "ok"}


def test_a_table_as_it_should_be_has_no_findings_and_is_told_what_was_not_tried() -> None:
    assert findings(world()) == (0, {})
    said = ctl(world(), "doctor").out
    assert said.splitlines()[-1] == "29 fine, 0 to know, 0 to mend"
    assert "PartiQLInsert, which add_many does without, is not tried" in said
    assert "PartiQLDelete, which clean does without, is not tried" in said
    assert "ledgerctl init" in ctl(world(GetItem={}), "doctor").out
    sharded = Settings(table="counters", region=A, shards={"c": 4})
    assert shape.lane_findings(sharded, [Lane(A, 3, "c"), Lane(A, 0, "c")], True)[0].level == "ok"


@pytest.mark.parametrize(
    ("changed", "level", "what"),
    [
        ({"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}, "fail", "keys"),
        ({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}, "fail", "stream"),
        ({"StreamSpecification": {"StreamEnabled": False}}, "fail", "stream"),
        ({"DeletionProtectionEnabled": False}, "warn", "deletion protection"),
        ({"BillingModeSummary": {"BillingMode": "PROVISIONED"}}, "warn", "throughput"),
        ({"OnDemandThroughput": {"MaxWriteRequestUnits": 100, "MaxReadRequestUnits": -1}}, "warn", "throughput"),
        ({"GlobalSecondaryIndexes": [{"IndexName": "by-change"}]}, "warn", "indexes"),
        ({"TableStatus": "UPDATING"}, "warn", "table"),
    ],
)
def test_a_table_of_another_shape_is_found(changed: dict[str, Any], level: str, what: str) -> None:
    found = [each for each in shape.table_findings(A, TABLE | changed) if each.level != "ok"]
    assert [(each.level, each.what) for each in found] == [(level, f"{A} {what}")]


@pytest.mark.parametrize(
    ("replicas", "regions", "what"),
    [([], (A, B), ["replicas for regions"]), ([B], (A,), ["regions for replicas"]), ([B], (A, B), [])],
)
def test_replicas_and_regions_agree(replicas: list[str], regions: tuple[str, ...], what: list[str]) -> None:
    table = TABLE | {"Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in replicas]}
    found = shape.replica_findings(Settings(table="counters", region=A, regions=regions), table)
    assert [each.what for each in found if each.level != "ok"] == what


REFUSED = refusal("AccessDeniedException")
DAMAGED = {"Item": {**items.shape_item(Shape((A,), {})), "regions": {"S": A}}}
STRONG = {"Table": TABLE | {"MultiRegionConsistency": "STRONG"}}
NO_STREAM = {"Table": TABLE | {"StreamSpecification": {"StreamEnabled": False}}}
OFF = {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}}
EXPIRES = {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}}
UNREAD = ("delta#eu-west-1#3#c", "fold#us-east-1#0#c", "mark#x")
LIMITS = '{"stock:": {"floor": 0}}'
ODD = {"LEDGER_CLEAN": "false", "LEDGER_ALLOWED_LATENESS_MS": "0", "LEDGER_KEEP_MS": "60001"}
LANES = "regions and shards against lanes"
LISTED = "directory of lanes"
NARROW = (f"{A} table", LANES, f"may clean {A}", f"may rebuild {A}", "may list, compact all")


@pytest.mark.parametrize(
    ("environ", "changed", "code", "found"),
    [
        ({}, {"DescribeTable": STRONG}, 1, {"consistency between Regions": "fail"}),
        ({}, {"DescribeTable": NO_STREAM}, 0, {f"{A} stream": "warn"}),
        ({}, {"DescribeTimeToLive": EXPIRES}, 1, {f"{A} time to live": "fail"}),
        ({}, {"DescribeContinuousBackups": OFF}, 0, {f"{A} point-in-time recovery": "warn"}),
        ({}, {"GetItem": {}}, 0, {"shape": "warn"}),
        ({"LEDGER_LIMITS": LIMITS}, {"UpdateItem": NEVER_WRITTEN}, 0, {"shape": "warn"}),
        ({}, {"GetItem": DAMAGED}, 1, {"shape": "fail"}),
        ({}, {"GetItem": REFUSED}, 0, {"shape": "warn", f"may read histories in {A}": "warn"}),
        ({}, {"Scan": {"Items": [key_of(pk) for pk in UNREAD]}}, 1, {LANES: "fail", LISTED: "warn"}),
        (ODD, {}, 0, {"clean": "warn", "allowed_lateness_ms": "warn", "keep_ms": "warn"}),
        ({}, dict.fromkeys(("Scan", "DeleteItem", "DescribeTable"), REFUSED), 0, dict.fromkeys(NARROW, "warn")),
    ],
    ids=[
        "strong",
        "stream",
        "expires",
        "backups",
        "no-shape",
        "no-limit",
        "damaged",
        "unseen",
        "unread",
        "settings",
        "narrow",
    ],
)
def test_what_loses_changes_fails_and_what_cannot_be_seen_is_to_know(
    environ: dict[str, str], changed: dict[str, Any], code: int, found: dict[str, str]
) -> None:
    assert findings(world(environ, **changed)) == (code, found)


@pytest.mark.parametrize(
    ("skew_ms", "level", "says"),
    [
        (0, None, "within two seconds of AWS"),
        (-1_500, None, "within two seconds of AWS"),
        (5_000, "warn", "5.0 s ahead of AWS"),
        (-60_000, "fail", "60.0 s behind AWS"),
    ],
)
def test_the_clock_is_held_against_the_date_header(skew_ms: int, level: str | None, says: str) -> None:
    made = replace(world(), clock=lambda: NOW_MS + 500 + skew_ms)
    assert findings(made)[1].get("clock") == level
    assert f"clock: {says}" in ctl(made, "doctor").out


@pytest.mark.parametrize(
    "shape_there", [Shape((A,), {"stock:": 4}), Shape((A, B), {}), Shape((B,), {})], ids=["shards", "regions", "region"]
)
def test_a_table_of_other_shards_or_regions_fails_and_init_leaves_it_as_it_is(shape_there: Shape) -> None:
    made = world(GetItem={"Item": items.shape_item(shape_there)})
    assert findings(made) == (1, {"shape": "fail"})
    said = ctl(made, "init")
    assert (said.code, said.out) == (2, "")
    assert "Nothing was changed" in said.err


def test_a_limit_that_the_shape_lacks_is_to_know_until_init_adds_it(engine: Engine, name: str) -> None:
    assert ctl(on(engine, name, A), "init").code == 0
    limited = on(engine, name, A)
    limited = replace(limited, environ={**limited.environ, "LEDGER_LIMITS": LIMITS})
    assert "lacks limits stock:; a process without them is not refused" in ctl(limited, "doctor").out
    assert ctl(on(engine, name, A), "add", "stock:1", "-6").code == 0
    assert ctl(limited, "init").code == 0
    assert "lacks limits" not in ctl(limited, "doctor").out
    assert ctl(on(engine, name, A), "add", "stock:2", "-6").code == 2


def test_init_refuses_a_limit_for_counters_that_have_changes_and_changes_nothing(engine: Engine, name: str) -> None:
    bare = on(engine, name, A)
    assert ctl(bare, "init").code == 0
    assert ctl(bare, "add", "stock:1", "-6").code == 0
    client = engine.client(A)
    client.put_item(TableName=name, Item=directory.item_of(Lane(A, 0, "stock:1")))
    limited = replace(bare, environ={**bare.environ, "LEDGER_LIMITS": LIMITS})
    said = ctl(limited, "init")
    assert said.code == 2
    assert "counters stock:1 have changes" in said.err
    assert ctl(bare, "add", "stock:2", "-6").code == 0


def test_init_adds_a_region_to_the_shape_and_the_old_list_is_refused(engine: Engine, name: str) -> None:
    assert ctl(on(engine, name, A), "init").code == 0
    (grown,) = ctl(on(engine, name, A, B), "init", "--json").documents
    assert f"{A}: added new Regions or limits to the shape" in grown["steps"]
    said = ctl(on(engine, name, A), "get", "c")
    assert (said.code, said.out) == (2, "")
    assert "LEDGER_REGIONS" in said.err
    assert ctl(on(engine, name, A, B), "get", "c").code == 0


def narrow(refused: Callable[[str, str], bool]) -> Answer:
    """A role that is refused an operation on a partition key."""

    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        if any(refused(operation, prefix) for prefix in ("delta#", "fold#") if prefix in json.dumps(asked)):
            return refusal("AccessDeniedException")
        return answering(DescribeTable={"Table": TWO})(operation, asked)

    return answer


TWO = TABLE | {"Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in (A, B)]}


def in_two(in_a: Answer, in_b: Answer | None = None) -> Surroundings:
    return aws(in_a, ENVIRON | {"LEDGER_REGIONS": f"{A},{B}"}, in_b)


def nothing(operation: str, asked: Any) -> tuple[int, Any]:
    return refusal("ResourceNotFoundException")


def test_every_region_is_asked_what_this_role_may_read_there() -> None:
    there = answering(DescribeTable={"Table": TWO})
    no_gets = narrow(lambda operation, prefix: operation == "GetItem")
    histories = {f"may read histories in {B}": "warn"}
    assert findings(in_two(there, no_gets)) == (0, histories | {f"may clean {A}, asking {B}": "warn"})
    blind = narrow(lambda operation, prefix: operation in ("Query", "BatchGetItem"))
    assert findings(in_two(there, blind)) == (0, histories | {f"may read in {B}": "warn"})
    assert findings(in_two(there, nothing)) == (1, {f"{B} table": "fail"}), "told once"
    assert ctl(aws(nothing), "doctor").code == 2


@pytest.mark.parametrize(
    ("operation", "prefix", "what"),
    [
        ("Query", "fold#", f"may read histories in {A}"),
        ("Query", "delta#", f"may read in {A}"),
        ("DeleteItem", "fold#", f"may rebuild {A}"),
        ("DeleteItem", "delta#", f"may clean {A}"),
        ("PutItem", "fold#", f"may compact {A}"),
        ("PutItem", "delta#", "may add"),
    ],
)
def test_a_permission_is_tried_on_the_keys_that_it_is_needed_for(operation: str, prefix: str, what: str) -> None:
    assert findings(in_two(narrow(lambda *asked: asked == (operation, prefix))))[1].get(what) == "warn"


def test_a_watermark_ahead_of_this_clock_is_to_know() -> None:
    def checkpoint(counter: str, ahead_ms: int) -> dict[str, Any]:
        lane, token = Lane(A, 0, counter), tokens.last_of(NOW_MS + ahead_ms)
        return dict(items.checkpoint_item(Checkpoint(lane, 1, 1, token, 1, token, NOW_MS)))

    held = [checkpoint("ahead", 86_400_000), checkpoint("right", -10_000)]
    broken = {**checkpoint("broken", 86_400_000), "count": {"S": "x"}}
    keys = [{name: item[name] for name in ("pk", "sk")} for item in (*held, broken)]
    listed = [dict(directory.item_of(Lane(A, 0, counter))) for counter in ("ahead", "right", "broken")]
    made = world(Scan={"Items": keys}, BatchGetItem={"Responses": {"counters": [*held, broken, *listed]}})
    assert findings(made) == (0, {"watermarks": "warn"})
    assert "warn watermarks: ahead of this clock: eu-west-1#0#ahead by 86,4" in ctl(made, "doctor").out
    right = world(Scan={"Items": keys[1:2]}, BatchGetItem={"Responses": {"counters": [*held[1:], *listed]}})
    assert "none of 1 looked at" in ctl(right, "doctor").out


@pytest.fixture
def name(table_names: Iterator[str]) -> str:
    return next(table_names)


def on(engine: Engine, name: str, *regions: str) -> Surroundings:
    environ = {"LEDGER_TABLE": name, "AWS_REGION": regions[0], "LEDGER_REGIONS": ",".join(regions), "COLUMNS": "80"}
    environ |= {"LEDGER_ENDPOINT_URL": engine.endpoint_url}
    return Surroundings(environ=environ, session=lambda _: signed_in(), pause=lambda _: None)


def test_init_makes_a_table_in_two_regions_that_doctor_finds_fine(engine: Engine, name: str) -> None:
    made = on(engine, name, A, B)
    (first,) = ctl(made, "init", "--json").documents
    assert first["steps"][-1] == f"{A}: wrote the shape"
    assert ctl(made, "doctor").out.splitlines()[-1].endswith("0 to know, 0 to mend")
    assert ctl(made, "init").out.endswith("is there already in eu-west-1 us-east-1: nothing to do\n")
    assert ctl(made, "add", "c", "5").code == 0
    (read,) = ctl(made, "get", "c", "--json").documents
    assert (read["value"], read["requests"]) == (5, 4)  # the shape, one batch for both lanes, then a query each


def test_init_goes_on_where_an_earlier_one_stopped(engine: Engine, name: str) -> None:
    engine.create_table(name, A)
    (said,) = ctl(on(engine, name, A, B), "init", "--json").documents
    assert not any("made the table" in step for step in said["steps"])
    assert f"{B}: made a replica" in said["steps"]


def test_init_refuses_a_table_of_another_shape(engine: Engine, name: str) -> None:
    keys: Any = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    }
    engine.client(A).create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **keys)
    said = ctl(on(engine, name, A), "init")
    assert (said.code, "not of the library's shape" in said.err, "Nothing was changed" in said.err) == (1, True, True)


NOT_YET = refusal("ContinuousBackupsUnavailableException", "Backups are being enabled")


def test_init_turns_recovery_on_as_soon_as_dynamodb_lets_it() -> None:
    pauses: list[float] = []
    made = world(DescribeContinuousBackups=OFF, UpdateContinuousBackups=iter([NOT_YET, NOT_YET, (200, {})]))
    said = ctl(replace(made, pause=pauses.append), "init")
    assert (said.code, said.out.splitlines()[0], len(pauses)) == (0, f"{A}: point-in-time recovery is on", 2)


@pytest.mark.parametrize(
    ("answer", "says"), [(NOT_YET, "Backups are being enabled"), (refusal("AccessDeniedException"), "may do")]
)
def test_init_without_recovery_is_not_ready(answer: Any, says: str) -> None:
    said = ctl(world(DescribeContinuousBackups=OFF, UpdateContinuousBackups=answer), "init")
    assert said.code == 3
    assert "ready" not in said.out
    assert f"{A}: point-in-time recovery is not on" in said.err
    assert says in said.err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}}}, "time to live: enabled"),
        ({"DescribeTable": {"Table": TABLE | {"MultiRegionConsistency": "STRONG"}}}, "strong"),
    ],
)
def test_init_refuses_what_doctor_fails(changed: dict[str, Any], says: str) -> None:
    said = ctl(world(**changed), "init")
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert "Nothing was changed" in said.err


def test_init_waits_for_a_replica_that_somebody_else_began() -> None:
    def seen(status: str) -> dict[str, Any]:
        return {"Table": TABLE | {"Replicas": [{"RegionName": B, "ReplicaStatus": status}]}}

    pauses: list[float] = []
    states = chain([seen("CREATING")] * 4, repeat(seen("ACTIVE")))
    both = {"Item": items.shape_item(Shape((A, B), {}))}
    made = world({"LEDGER_REGIONS": f"{A},{B}"}, DescribeTable=states, GetItem=both)
    assert ctl(replace(made, pause=pauses.append), "init").code == 0
    assert pauses


@pytest.mark.parametrize("regions", [(A,), (A, B)])
def test_init_turns_a_missing_stream_on(engine: Engine, name: str, regions: tuple[str, ...]) -> None:
    made = on(engine, name, *regions)
    keys = {"KeySchema": TABLE["KeySchema"], "AttributeDefinitions": TABLE["AttributeDefinitions"]}
    engine.client(A).create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **keys)
    (said,) = ctl(made, "init", "--json").documents
    assert said["steps"][0] == f"{A}: turned the stream on"
    assert ctl(made, "doctor").out.splitlines()[-1].endswith("0 to know, 0 to mend")
    assert ctl(made, "init").out.endswith("nothing to do\n")


def test_lanes_that_the_directory_lacks_are_told_with_what_writes_them() -> None:
    lane = Lane(A, 0, "c")
    item = {"pk": {"S": items.delta_pk(lane)}, "sk": {"S": "015JGGKGE064BG4X58772SZHBM"}}
    said = ctl(aws(answering(Scan={"Items": [item]})), "doctor")
    assert "directory of lanes: 1 of 1 lanes of 1 counters are not in it, such as eu-west-1#0#c" in said.out
    assert "ledgerctl adopt" in said.out

    def with_directory(operation: str, asked: Any) -> tuple[int, Any]:
        if operation == "BatchGetItem":
            keys = asked["RequestItems"]["counters"]["Keys"]
            return 200, {"Responses": {"counters": [key for key in keys if key["pk"]["S"].startswith("lane#")]}}
        return answering(Scan={"Items": [item]})(operation, asked)

    assert "directory of lanes: has each of 1 lanes of 1 counters\n" in ctl(aws(with_directory), "doctor").out


def test_the_lanes_of_limited_counters_are_held_against_the_directory_too() -> None:
    gate = gates.gate_key(Lane(A, 0, "seats:gig"))
    said = ctl(aws(answering(Scan={"Items": [{"pk": {"S": gate.pk}, "sk": {"S": gate.sk}}]})), "doctor")
    assert "directory of lanes: 1 of 1 lanes of 1 counters are not in it, such as eu-west-1#0#seats:gig" in said.out
    assert "regions and shards against lanes: 0 lanes, all of them read" in said.out


def test_doctor_says_that_it_looked_at_a_part_of_the_table_where_it_did() -> None:
    lanes = [Lane(A, 0, f"c{n}") for n in range(101)]
    deltas = [{"pk": {"S": items.delta_pk(lane)}, "sk": {"S": "015JGGKGE064BG4X58772SZHBM"}} for lane in lanes]
    rest = "that were looked at; `ledgerctl list --scan` looks at the rest of the table, too"

    def said(count: int, last: dict[str, Any]) -> str:
        def answer(operation: str, asked: Any) -> tuple[int, Any]:
            if operation == "BatchGetItem":
                keys = asked["RequestItems"]["counters"]["Keys"]
                return 200, {"Responses": {"counters": [key for key in keys if key["pk"]["S"].startswith("lane#")]}}
            return answering(Scan={"Items": deltas[:count], **last})(operation, asked)

        return " ".join(ctl(aws(answer), "doctor").out.split())

    assert rest not in said(100, {})
    assert f"has each of 100 lanes of 100 counters {rest}" in said(101, {})
    assert f"has each of 1 lanes of 1 counters {rest}" in said(1, {"LastEvaluatedKey": deltas[0]})


def test_a_process_that_inserts_alone_is_told_whether_its_role_may_replace_a_change() -> None:
    environ = ENVIRON | {"LEDGER_INSERT_ONLY": "true"}
    assert "insert only: PutItem on delta# is allowed" in ctl(aws(answering(), environ), "doctor").out
    refused = answering(PutItem=refusal("AccessDeniedException"))
    assert "insert only: PutItem on delta# is refused, as it should be" in ctl(aws(refused, environ), "doctor").out
