"""`doctor` on tables of every shape, and `init`, which makes one that it has nothing to say about."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import pytest

from lab.engines.ministack import Engine
from ledger import Settings, items, tokens
from ledger.values import Checkpoint, Lane, Shape
from ledgerctl import shape
from ledgerctl.call import Surroundings
from tests.ledgerctl.support import ENVIRON, NOW_MS, A, Answer, B, aws, ctl, refusal, signed_in

TABLE: dict[str, Any] = {
    "TableName": "counters",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
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


def test_a_table_as_it_should_be_has_no_findings() -> None:
    assert findings(world()) == (0, {})
    assert ctl(world(), "doctor").out.splitlines()[-1] == "28 fine, 0 to know, 0 to mend"


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
    [([], (A, B), "replicas for regions"), ([B], (A,), "regions for replicas"), ([B], (A, B), None)],
)
def test_replicas_and_regions_are_held_against_each_other(
    replicas: list[str], regions: tuple[str, ...], what: str | None
) -> None:
    table = TABLE | {"Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in replicas]}
    found = shape.replica_findings(Settings(table="counters", region=A, regions=regions), table)
    assert [each.what for each in found if each.level != "ok"] == ([what] if what else [])


def test_strong_consistency_between_regions_fails() -> None:
    code, found = findings(world(DescribeTable={"Table": TABLE | {"MultiRegionConsistency": "STRONG"}}))
    assert (code, found) == (1, {"consistency between Regions": "fail"})


def test_time_to_live_fails_and_missing_backups_are_to_know() -> None:
    on = {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}}
    off = {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}}
    code, found = findings(world(DescribeTimeToLive=on, DescribeContinuousBackups=off))
    assert (code, found) == (1, {f"{A} time to live": "fail", f"{A} point-in-time recovery": "warn"})


@pytest.mark.parametrize(("skew_ms", "level"), [(0, None), (-1_500, None), (5_000, "warn"), (-60_000, "fail")])
def test_the_clock_is_held_against_the_date_header(skew_ms: int, level: str | None) -> None:
    made = replace(world(), clock=lambda: NOW_MS + 500 + skew_ms)
    assert findings(made)[1].get("clock") == level


def test_a_table_without_a_shape_is_to_know() -> None:
    assert findings(world(GetItem={})) == (0, {"shape": "warn"})
    assert "ledgerctl init" in ctl(world(GetItem={}), "doctor").out


@pytest.mark.parametrize(
    "shape_there", [Shape((A,), {"stock:": 4}), Shape((A, B), {}), Shape((B,), {})], ids=["shards", "regions", "region"]
)
def test_a_table_of_other_shards_or_regions_fails_and_init_leaves_it_as_it_is(shape_there: Shape) -> None:
    made = world(GetItem={"Item": items.shape_item(shape_there)})
    assert findings(made) == (1, {"shape": "fail"})
    said = ctl(made, "init")
    assert (said.code, said.out) == (2, "")
    assert "Nothing was changed" in said.err


def test_a_shape_that_is_damaged_fails() -> None:
    damaged = items.shape_item(Shape((A,), {}))
    assert findings(world(GetItem={"Item": {**damaged, "regions": {"S": A}}})) == (1, {"shape": "fail"})


def test_a_shape_that_may_not_be_read_is_to_know() -> None:
    found = findings(world(GetItem=refusal("AccessDeniedException")))
    assert found == (0, {"shape": "warn", f"may read histories in {A}": "warn"})


def test_init_adds_a_region_to_the_shape_and_a_command_with_the_old_list_is_refused(
    engine: Engine, table_names: Iterator[str]
) -> None:
    name = next(table_names)
    assert ctl(on(engine, name, A), "init").code == 0
    (grown,) = ctl(on(engine, name, A, B), "init", "--json").documents
    assert f"{A}: added new Regions to the shape" in grown["steps"]
    said = ctl(on(engine, name, A), "get", "c")
    assert (said.code, said.out) == (2, "")
    assert "LEDGER_REGIONS" in said.err
    assert ctl(on(engine, name, A, B), "get", "c").code == 0


def test_a_lane_that_nobody_reads_fails() -> None:
    keys = [{"pk": {"S": pk}, "sk": {"S": "x"}} for pk in ("delta#eu-west-1#3#c", "fold#us-east-1#0#c", "mark#x")]
    code, found = findings(world(Scan={"Items": keys}))
    assert (code, found) == (1, {"regions and shards against lanes": "fail"})
    seen = [Lane(A, 3, "c"), Lane(A, 0, "c")]
    sharded = Settings(table="counters", region=A, shards={"c": 4})
    assert shape.lane_findings(sharded, seen, True)[0].level == "ok"


def test_settings_that_are_seldom_meant_are_to_know() -> None:
    odd = {"LEDGER_CLEAN": "false", "LEDGER_ALLOWED_LATENESS_MS": "0", "LEDGER_KEEP_MS": "60001"}
    code, found = findings(world(odd))
    assert (code, found) == (0, {"clean": "warn", "allowed_lateness_ms": "warn", "keep_ms": "warn"})


def test_a_narrow_role_is_told_what_it_may_not_do() -> None:
    refused = refusal("AccessDeniedException")
    code, found = findings(world(Scan=refused, DeleteItem=refused, DescribeTable=refused))
    assert (code, found) == (
        0,
        {
            f"{A} table": "warn",
            "regions and shards against lanes": "warn",
            f"may clean {A}": "warn",
            f"may rebuild {A}": "warn",
            "may list, compact all": "warn",
        },
    )


def narrow(refused: Callable[[str, str], bool]) -> Answer:
    """A role that is refused an operation on a partition key."""

    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        if any(refused(operation, prefix) for prefix in ("delta#", "fold#") if prefix in json.dumps(asked)):
            return refusal("AccessDeniedException")
        return answering(DescribeTable={"Table": TWO})(operation, asked)

    return answer


TWO = TABLE | {"Replicas": [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in (A, B)]}


def test_every_region_is_asked_what_this_role_may_read_there() -> None:
    in_b = narrow(lambda operation, prefix: operation == "GetItem")
    made = aws(answering(DescribeTable={"Table": TWO}), ENVIRON | {"LEDGER_REGIONS": f"{A},{B}"}, in_b)
    assert findings(made) == (0, {f"may read histories in {B}": "warn", f"may clean {A}, asking {B}": "warn"})
    blind = narrow(lambda operation, prefix: operation in ("Query", "BatchGetItem"))
    made = aws(answering(DescribeTable={"Table": TWO}), ENVIRON | {"LEDGER_REGIONS": f"{A},{B}"}, blind)
    assert findings(made) == (0, {f"may read in {B}": "warn", f"may read histories in {B}": "warn"})


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
    made = aws(narrow(lambda *asked: asked == (operation, prefix)), ENVIRON | {"LEDGER_REGIONS": f"{A},{B}"})
    assert findings(made)[1].get(what) == "warn"


def test_a_region_that_lacks_the_table_is_told_once() -> None:
    def nothing(operation: str, asked: Any) -> tuple[int, Any]:
        return refusal("ResourceNotFoundException")

    made = aws(answering(DescribeTable={"Table": TWO}), ENVIRON | {"LEDGER_REGIONS": f"{A},{B}"}, nothing)
    assert findings(made) == (1, {f"{B} table": "fail"})


def test_a_permission_that_cannot_be_tried_is_said_not_to_be() -> None:
    said = ctl(world(), "doctor").out
    assert "PartiQLInsert, which add_many does without, is not tried" in said
    assert "PartiQLDelete, which clean does without, is not tried" in said


def test_a_watermark_ahead_of_this_clock_is_to_know() -> None:
    def checkpoint(counter: str, ahead_ms: int) -> dict[str, Any]:
        lane, token = Lane(A, 0, counter), tokens.last_of(NOW_MS + ahead_ms)
        return dict(items.checkpoint_item(Checkpoint(lane, 1, 1, token, 1, token, NOW_MS)))

    held = [checkpoint("ahead", 86_400_000), checkpoint("right", -10_000)]
    broken = {**checkpoint("broken", 86_400_000), "count": {"S": "x"}}
    keys = [{name: item[name] for name in ("pk", "sk")} for item in (*held, broken)]
    made = world(Scan={"Items": keys}, BatchGetItem={"Responses": {"counters": [*held, broken]}})
    assert findings(made) == (0, {"watermarks": "warn"})
    said = ctl(made, "doctor").out
    assert "warn watermarks: ahead of this clock: eu-west-1#0#ahead by 86,4" in said
    assert (
        "none of 1 looked at"
        in ctl(world(Scan={"Items": keys[1:2]}, BatchGetItem={"Responses": {"counters": held[1:]}}), "doctor").out
    )


def test_a_region_without_the_table_fails() -> None:
    def answer(operation: str, asked: Any) -> tuple[int, Any]:
        return refusal("ResourceNotFoundException")

    assert ctl(aws(answer), "doctor").code == 2


def on(engine: Engine, name: str, *regions: str) -> Surroundings:
    environ = {
        "LEDGER_TABLE": name,
        "AWS_REGION": regions[0],
        "LEDGER_REGIONS": ",".join(regions),
        "LEDGER_ENDPOINT_URL": engine.endpoint_url,
        "COLUMNS": "80",
    }
    return Surroundings(environ=environ, session=lambda _: signed_in(), pause=lambda _: None)


def test_init_makes_a_table_in_two_regions_that_doctor_has_nothing_to_say_about(
    engine: Engine, table_names: Iterator[str]
) -> None:
    made = on(engine, next(table_names), A, B)
    (first,) = ctl(made, "init", "--json").documents
    assert first["steps"][-1] == f"{A}: wrote the shape"
    assert ctl(made, "doctor").out.splitlines()[-1].endswith("0 to know, 0 to mend")
    assert ctl(made, "init").out.endswith("is there already in eu-west-1 us-east-1: nothing to do\n")
    assert ctl(made, "add", "c", "5").code == 0
    (read,) = ctl(made, "get", "c", "--json").documents
    assert (read["value"], read["requests"]) == (5, 4)  # the shape, one batch for both lanes, then a query each


def test_init_goes_on_where_an_earlier_one_stopped(engine: Engine, table_names: Iterator[str]) -> None:
    name = next(table_names)
    engine.create_table(name, A)
    (said,) = ctl(on(engine, name, A, B), "init", "--json").documents
    assert not any("made the table" in step for step in said["steps"])
    assert f"{B}: made a replica" in said["steps"]


def test_init_refuses_a_table_of_another_shape(engine: Engine, table_names: Iterator[str]) -> None:
    name = next(table_names)
    engine.client(A).create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    said = ctl(on(engine, name, A), "init")
    assert said.code == 1
    assert "not of the library's shape" in said.err
    assert "Nothing was changed" in said.err


OFF = {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}}
NOT_YET = refusal("ContinuousBackupsUnavailableException", "Backups are being enabled")


def test_init_turns_recovery_on_as_soon_as_dynamodb_lets_it() -> None:
    pauses: list[float] = []
    made = world(DescribeContinuousBackups=OFF, UpdateContinuousBackups=iter([NOT_YET, NOT_YET, (200, {})]))
    said = ctl(replace(made, pause=pauses.append), "init")
    assert (said.code, said.out.splitlines()[0]) == (0, f"{A}: point-in-time recovery is on")
    assert len(pauses) == 2


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
    said = ctl(replace(made, pause=pauses.append), "init")
    assert (said.code, len(pauses) > 0) == (0, True)


@pytest.mark.parametrize("regions", [(A,), (A, B)])
def test_init_turns_a_missing_stream_on(engine: Engine, table_names: Iterator[str], regions: tuple[str, ...]) -> None:
    made = on(engine, next(table_names), *regions)
    name = made.environ["LEDGER_TABLE"]
    keys = {"KeySchema": TABLE["KeySchema"], "AttributeDefinitions": TABLE["AttributeDefinitions"]}
    engine.client(A).create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **keys)
    (said,) = ctl(made, "init", "--json").documents
    assert said["steps"][0] == f"{A}: turned the stream on"
    assert ctl(made, "doctor").out.splitlines()[-1].endswith("0 to know, 0 to mend")
    assert ctl(made, "init").out.endswith("nothing to do\n")


def test_a_table_in_one_region_without_a_stream_is_to_know() -> None:
    code, found = findings(world(DescribeTable={"Table": TABLE | {"StreamSpecification": {"StreamEnabled": False}}}))
    assert (code, found) == (0, {f"{A} stream": "warn"})
