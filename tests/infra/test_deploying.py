"""Deploy and remove on an account: the order of what is changed, and what is refused before
anything is.
"""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from infra import canary, deploy, forms, parameters, table_shape
from infra.aws import DeploymentRefused
from infra.canary import POLL_S, CheckFailed
from infra.deploy import COUNTS, DeploymentStopped
from infra.deployment import deployment
from infra.table_stack import STACK_POLL_S, STACK_WAIT_S
from ledger.core import items, tokens
from ledger.core.errors import Unavailable
from ledger.core.keep import Keep
from ledger.core.limit import Limit, Shape
from ledger.core.requests import Put
from ledger.core.values import Delta, Lane
from ledger.lane import directory
from service.canary.handler import COUNTER
from tests.infra import template
from tests.infra.aws import (
    FOLDED,
    HOME,
    OTHER,
    QUEUES,
    TABLE_STACK,
    THIRD,
    AwsAccount,
    aws,
    refused,
)

__all__ = ["aws"]  # the fixture

BOTH = f"{HOME} {OTHER}"
THREE = f"{BOTH} {THIRD}"
SHARDS = 'shards={"stock:":4}'
SEATS = 'limits={"seats:":{"ceiling":100,"region":"eu-west-1"}}'
DAYS = 'periods={"day:":{"late_s":60,"keep_s":90}}'
CREATED = [f"create {HOME}", f"update {HOME}, protected"]
CREATED_BOTH = [f"create {BOTH}", f"update {BOTH}, protected"]
WRONG = FOLDED | {"read": False}


def service_in(*regions: str) -> list[str]:
    return [step for region in regions for step in (f"deploy {region}", f"canary {region}")]


@pytest.fixture
def play(aws: AwsAccount) -> Callable[..., None]:
    """A command on an account of which something is otherwise from `now` on: what is changed,
    and what is said.
    """

    def play(
        command: Callable[..., object], *given: str, steps: list[str], says: str = "", **now: Any
    ) -> None:
        options = now.pop("options", {})
        aws.stacks.get((HOME, TABLE_STACK), {}).update(now.pop("stack", {}))
        for name, value in now.items():
            setattr(aws, name, value)
        aws.steps.clear()
        with (
            pytest.raises((DeploymentRefused, DeploymentStopped), match=says)
            if says
            else nullcontext()
        ):
            command(*given, **options)
        assert aws.steps == steps

    return play


def test_the_table_comes_first_and_the_shape_last(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    for most in (10, 100):
        says = f"reservedCanary=1: .* {most} .*Nothing was changed.*Set reservedCanary=0"
        play(aws.deploy, BOTH, limits=dict.fromkeys(aws.limits, most), says=says, steps=[])
    enough = {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 101}
    says = rf"value-wrong.*{HOME} has the new deployment; unchanged: {OTHER}.*--no-check"
    steps = [*CREATED_BOTH, *service_in(HOME)]
    play(aws.deploy, BOTH, SHARDS, canary={HOME: [WRONG]}, limits=enough, says=says, steps=steps)
    enough["UnreservedConcurrentExecutions"] = 99
    # for the other Region
    play(aws.deploy, BOTH, SHARDS, canary={}, says="reservedCanary", steps=[])
    play(
        aws.deploy,
        BOTH,
        SHARDS,
        limits=dict.fromkeys(aws.limits, 1_000),
        steps=[*service_in(HOME, OTHER), "shape"],
    )
    assert aws.shape == Shape((HOME, OTHER), {"stock:": 4})
    # what is kept already counts
    play(aws.deploy, BOTH, SHARDS, limits=enough, steps=service_in(HOME, OTHER))
    more = [
        f"update {THREE}, protected",
        *service_in(HOME, OTHER),
        f"deploy {THIRD}",
        "shape",
        f"canary {THIRD}",
    ]
    now = {"canary": {THIRD: [WRONG]}, "limits": dict.fromkeys(aws.limits, 1_000)}
    play(aws.deploy, THREE, SHARDS, **now, says="all else is deployed", steps=more)
    assert aws.shape == Shape((HOME, OTHER, THIRD), {"stock:": 4}, 2)
    steps = [f"deploy {region}" for region in (HOME, OTHER, THIRD)]
    play(aws.deploy, THREE, SHARDS, options={"check": False}, steps=steps)


def test_a_forgotten_table_name_changes_no_table(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    aws.service_is_in(HOME, {"TableName": "restored"})
    play(aws.deploy, HOME, says="has the table restored, and this deployment ledger-dev", steps=[])
    play(
        aws.deploy,
        HOME,
        options={"switch_table": True},
        steps=[*CREATED, *service_in(HOME), "shape"],
    )


def test_a_queue_with_messages_keeps_every_region(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    aws.deploy(BOTH)
    for region, queue, attribute in [
        (r, q, a) for r in (HOME, OTHER) for q in QUEUES.values() for a in COUNTS
    ]:
        says = f"3 messages wait in {queue}.*Nothing was removed.*--drop-changes"
        play(aws.remove, BOTH, waiting={(region, queue, attribute): 3}, says=says, steps=[])
    assert len(COUNTS) == 3  # visible, received, delayed
    play(aws.remove, OTHER, options={"drop_changes": True}, steps=[f"remove {OTHER}"])
    play(aws.remove, BOTH, waiting={}, steps=[f"remove {HOME}"])
    assert (
        aws.said[-1]
        == f"kept: the table ledger-dev with all its replicas, and its stack {TABLE_STACK}"
    )
    assert ([*aws.stacks], sorted(aws.replicas)) == ([(HOME, TABLE_STACK)], [HOME, OTHER])


def test_the_same_command_brings_any_table_to_its_regions(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    table = aws.deploy_table
    play(table, HOME, OTHER, replicas={OTHER: [OTHER]}, says=f"no stack {TABLE_STACK}", steps=[])
    says = r"Table: an SCP denies it.*deleted its table with it.*the same command again"
    play(table, HOME, replicas={}, ends=["ROLLBACK_COMPLETE"], says=says, steps=CREATED[:1])
    earlier = {"EnableTerminationProtection": True}  # a stack that an earlier version made
    says = f"ledger-dev in {OTHER}. Nothing was changed. Turn off"
    play(table, HOME, OTHER, stack=earlier, replicas={OTHER: [OTHER]}, says=says, steps=[])
    says = "is DELETE_FAILED, which only a person can end"
    play(table, HOME, replicas={}, ends=["DELETE_FAILED"], says=says, steps=["delete"])
    now: dict[str, Any] = {"StackStatus": "ROLLBACK_COMPLETE"}
    ends = ["", "CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
    play(
        table,
        HOME,
        stack=now,
        ends=ends,
        says="The table is as it was before",
        steps=["delete", *CREATED],
    )
    play(table, HOME, polls=3, steps=CREATED[1:])  # not protected yet
    assert aws.stacks[HOME, TABLE_STACK]["EnableTerminationProtection"] is True
    # of an earlier command
    play(table, HOME, stack={"busy": ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"] * 5}, steps=[])
    polls, says = (
        2 * STACK_WAIT_S // STACK_POLL_S,
        r"still UPDATE_IN_PROGRESS after 1800 s.*the same command again",
    )
    play(table, HOME, OTHER, polls=polls, says=says, steps=CREATED_BOTH[1:])
    says = r"not active after 1800 s: ACTIVE, replicas .*'CREATING'.*goes on"
    play(table, HOME, OTHER, polls=0, states={OTHER: "CREATING"}, says=says, steps=[])
    play(table, HOME, OTHER, states={}, steps=[])
    for regions, says in (
        ([HOME], "Never take out"),
        ([HOME, THIRD], "Never take out"),
        ([OTHER, HOME], "Name that Region first"),
        ([HOME, THIRD, OTHER], "in this order"),
        ([HOME, OTHER, THIRD, "eu-north-1"], "one Region at a time"),
    ):
        play(table, *regions, says=says, steps=[])
    for state in (
        "REVIEW_IN_PROGRESS",
        "ROLLBACK_FAILED",
        "UPDATE_FAILED",
        "UPDATE_ROLLBACK_FAILED",
        "A_NEW_STATE",
    ):
        now = {"StackStatus": state}
        play(
            table,
            HOME,
            OTHER,
            THIRD,
            stack=now,
            says=f"is {state}, which only a person can end",
            steps=[],
        )
    now = {"StackStatus": "IMPORT_COMPLETE"}
    strong, says = (
        {"MultiRegionConsistency": "STRONG"},
        "limit alone.*Nothing was changed.*another table",
    )
    play(table, HOME, OTHER, THIRD, stack=now, described=strong, says=says, steps=[])
    # a Region is an update of nothing else
    steps = [f"update {BOTH}", f"update {THREE}", f"replica {THIRD}"]
    off = {"deletion_protection": False}
    options: dict[str, Any] = {"described": {}, "options": off}
    # as the engine: no replica
    play(table, HOME, OTHER, THIRD, replicating=False, **options, steps=steps)


MANY = "limits=" + json.dumps(
    {f"seats:{n}:": {"floor": 0} for n in range(200)}, separators=(",", ":")
)
REFUSED = [
    # REGIONS  PARAMS                                           what is said, of a table with shards
    #          and limits in both
    (BOTH, SEATS, "shards="),  # PARAMS was forgotten
    (BOTH, f'{SEATS} shards={{"stock:":8}}', "'stock:': 8"),
    (HOME, f'{SEATS} shards={{"stock:":4}}', "added in us-east-1"),
    (BOTH, 'shards={"stock:":4}', "limits"),
    (BOTH, 'shards={"stock:":4} ' + SEATS.replace("100", "99"), "set_limit"),
    (
        BOTH,
        'shards={"stock:":4} ' + SEATS[:-1] + ',"seats:gig":{"floor":0}}',
        "would change the limit",
    ),
    (
        BOTH,
        'shards={"stock:":4} ' + SEATS[:-1] + ',"votes:":{"floor":0}}',
        "counters votes:x have changes",
    ),
    # of any table
    (BOTH, "keepMs=60000", "keep_ms=60000 must be above read_time_max_ms=60000"),
    (BOTH, "shards=four", "LEDGER_SHARDS='four' cannot be read as shards"),
    (
        BOTH,
        'limits={"":{"ceiling":9,"region":"eu-west-1"}}',
        "ledger:canary, the counter of the canaries",
    ),
    (
        BOTH,
        'periods={"":{"late_s":0,"keep_s":0}}',
        "ledger:canary, the counter of the canaries, ends with no period",
    ),
    (BOTH, "thresholds=low", "LEDGER_THRESHOLDS='low' cannot be read as thresholds"),
    (BOTH, 'thresholds={"stock:":[{"below":10,"region":"ap-south-1"}]}', "publishes below-10"),
    (BOTH, "ringEverySeconds=300 allowedLatenessMs=235000", "a fold may be 600 s after its change"),
    (BOTH, "keepMs=70000 allowedLatenessMs=80000", "keepMs=70000 is below allowedLatenessMs=80000"),
    (BOTH, "allowedLatenessMs=1999", "allowedLatenessMs=1999 is not a number from 2000"),
    (BOTH, "changesConcurrency=1", "changesConcurrency=1 is not a number from 2 to 1000"),
    (BOTH, "sweepHours=none", "sweepHours=none is not a number"),
    (BOTH, "outcomes=yes", "outcomes=yes is not true or false"),
    (
        BOTH,
        "jwtIssuer=https://id.example",
        "jwtIssuer=https://id.example and jwtAudience=: give both or none",
    ),
    (BOTH, "jwtReadScope=read jwtWriteScope=add", "jwtIssuer names nobody"),
    (BOTH, "allowedPrefixes=stock:", "allowedPrefixes=stock: is not a JSON list of prefixes"),
    (BOTH, 'allowedPrefixes=["stock:*"]', "'stock:*': a prefix is the beginning"),
    (BOTH, 'shards={"hot:*":4}', "shards['hot:*']: a prefix is the beginning"),
    (BOTH, 'limits={"hot:*":{"floor":0}}', "limits['hot:*']: a prefix is the beginning"),
    (BOTH, "producerAccounts=*", "AWS lets nobody else in"),
    (BOTH, "corsOrigins=https://a.example/", "'https://a.example/' is no origin"),
    (
        BOTH,
        "corsOrigins=https://a.example,https://b.example/x",
        "'https://b.example/x' is no origin",
    ),
    (BOTH, "corsOrigins=a.example", "'a.example' is no origin"),
    (BOTH, "corsOrigins=https://a.example,", "'' is no origin"),
    (BOTH, "alarmEmail=x", "alarmEmail=x is no address"),
    (BOTH, "alarmEmail=a@b", "alarmEmail=a@b is no address"),
    (BOTH, "alarmEmail=a@b.example,c@d.example", "is no address"),
    (BOTH, "jwtIssuer=http:// jwtAudience=shop", "jwtIssuer=http:// is no URL of an issuer"),
    (
        BOTH,
        "jwtIssuer=http://id.example jwtAudience=shop",
        "jwtIssuer=http://id.example is no URL of an issuer",
    ),
    (BOTH, "jwtIssuer=https://id.example?x=1 jwtAudience=shop", "is no URL of an issuer"),
    (BOTH, "jwtIssuer=https://id.example jwtAudience=shop,", "jwtAudience=shop, has an empty part"),
    (BOTH, 'allowedPrefixes=["ledger:"]', "no name that begins with ledger:"),
    (BOTH, 'allowedPrefixes=["stock:","ledger:canary"]', "no name that begins with ledger:"),
    (
        BOTH,
        f"{SEATS} {SHARDS} tableWrites=..99999999",
        "write units of a table: 40000 in eu-west-1, and it needs 99999999",
    ),
    (
        BOTH,
        f"{SEATS} {SHARDS} tableWrites=..20000 tableReads=..40001",
        "read units of a table: 40000 in eu-west-1, and it needs 40001",
    ),
    (BOTH, "tableName=counters.eu", "tableName=counters.eu is no name of a table: give 3 to 122"),
    (BOTH, "tableName=my_counters", "tableName=my_counters is no name of a table: give 3 to 122"),
    (BOTH, "tableName=1st", "tableName=1st is no name of a table: give 3 to 122"),
    (BOTH, "logRetentionDays=31", "logRetentionDays=31 is none of 1, 3, 5"),
    (BOTH, "logRetentionDays=", "logRetentionDays has no value"),
    (BOTH, MANY, "the variables of Api have"),
    (BOTH, "tableWrites=9..8", "tableWrites=9..8 is not a range of units a second"),
    (BOTH, "tableReads=5000", "tableReads=5000 is not a range of units a second"),
    (BOTH, "tableWrites=1..8 tableReads=..9", "a table is provisioned for both"),
    (BOTH, "tableWrites=1..8", "a table is provisioned for both"),
    (BOTH, "foldmin=8", "foldmin is no parameter of serverless.yml"),
    (BOTH, "endpointUrl=http://127.0.0.1", "endpointUrl is no parameter of serverless.yml"),
    (BOTH, "alarmEmail=", "alarmEmail has no value"),
    (BOTH, "streamArn=arn:aws:x", "streamArn is set by the deployment."),
    (BOTH, "keepMs", "name=value"),
    (BOTH, "keepMs=90000 foldMin=8 keepMs=80000", "each name once"),
    ("", "", "one or more"),
    (f"{HOME} {HOME}", "", "different"),
]


def test_a_contradiction_is_refused_before_anything_changes(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    aws.deploy(BOTH, f"{SEATS} {SHARDS}")
    lane = Lane(HOME, 0, "votes:x")
    for item in (directory.item_of(lane), items.delta_item(Delta(lane, tokens.last_of(0), 1))):
        aws.items.answer(Put(item))
    for regions, params, says in REFUSED:
        play(aws.deploy, regions, params, says=re.escape(says), steps=[])
    for name, stage in (("Ledger", "dev"), ("ledger", "dev_1")):
        with pytest.raises(DeploymentRefused, match="small letters"):
            deployment(name, stage, HOME, "")
    aws.items.answer = lambda request: (_ for _ in ()).throw(Unavailable("no answer"))
    play(aws.deploy, BOTH, says="cannot be read", steps=[])


AGREED = [
    (
        "corsOrigins=https://shop.example,http://127.0.0.1:8080 "
        "alarmEmail=first.last+x@b-c.example logRetentionDays=400"
    ),
    "corsOrigins=*",
    "jwtIssuer=https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_a1 jwtAudience=shop,admin",
    "tableWrites=..40000",
    "ringEverySeconds=300 allowedLatenessMs=234000",
    (
        "jwtIssuer=https://id.example jwtAudience=shop jwtReadScope=read jwtWriteScope=add "
        "reservedCanary=0"
    ),
    (
        'producerAccounts=111122223333,444455556666 allowedPrefixes=["stock:", "votes:"] '
        "sweepHours=0.003"
    ),
    "tableWrites=1..8 tableReads=1..1",
    "tableWrites=..1000",
    'thresholds={"stock:": [{"below": 10}], "votes:": [{"above": 5, "name": "quorum"}]}',
]


def test_parameters_that_agree_are_deployed_and_may_grow(
    aws: AwsAccount, play: Callable[..., None]
) -> None:
    aws.deploy(HOME)
    for params in AGREED:
        play(aws.deploy, HOME, params, steps=service_in(HOME))
    play(aws.deploy, HOME, SEATS, steps=[*service_in(HOME), "shape"])
    assert aws.shape == Shape((HOME,), {}, 2, limits={"seats:": Limit(ceiling=100, region=HOME)})
    play(aws.deploy, HOME, f"{SEATS} {DAYS}", steps=[*service_in(HOME), "shape"])
    assert aws.shape.periods == {
        "day:": Keep(late=timedelta(seconds=60), keep=timedelta(seconds=90))
    }
    assert [
        deployment("ledger", "dev", HOME, each).table_stack.retires for each in (DAYS, SEATS)
    ] == [True, False]


def test_what_a_region_has_different_is_checked_too(
    aws: AwsAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Any, play: Callable[..., None]
) -> None:
    (tmp_path / "regions.yml").write_text(
        "none: {}\ndev:\n  us-east-1:\n    workConcurrency: 2000\n"
    )
    monkeypatch.setattr(parameters, "REGIONAL", tmp_path / "regions.yml")
    aws.deploy(HOME)
    play(aws.deploy, BOTH, says="workConcurrency=2000 is not a number", steps=[])
    default = template.framework()["params"]["default"]
    found = {
        name
        for name, value in default.items()
        if isinstance(value, int) or value in ("true", "false")
    }
    assert found - forms.template_forms().keys() == {*parameters.OTHERS, "foldMin", "clean"}


def test_each_region_gets_all_parameters_and_its_own_stream() -> None:
    assert deployment("ledger", "e2e", HOME, "endpointUrl=http://127.0.0.1").params_of(HOME)[
        "endpointUrl"
    ]
    given = deployment("ledger", "dev", THREE, 'keepMs=90000 shards={"a": 2}')
    found = {
        "name": "ledger",
        "regions": f"{HOME},{OTHER},{THIRD}",
        "streamArn": "stream",
        "tellsThresholds": "false",
    }
    assert given.params_of(HOME, "stream") == {**found, "keepMs": "90000", "shards": '{"a": 2}'}
    low, low_there = '{"below":10}', f'{{"below":5,"region":"{OTHER}"}}'
    for thresholds, told in (
        (low, (True, False)),
        (low_there, (False, True)),
        (f"{low},{low_there}", (True, True)),
    ):
        target = deployment("ledger", "dev", BOTH, f'thresholds={{"stock:":[{thresholds}]}}')
        assert (target.tells(HOME), target.tells(OTHER)) == told
    limited = 'limits={"seats:":{"floor":0}} thresholds={"seats:":[{"left":5}]}'
    assert deployment("ledger", "dev", BOTH, limited).tells(HOME)


LATE, LATER = (
    FOLDED | {"newest_ms": 1_000, "folded_ms": None},
    FOLDED | {"newest_ms": 11_000, "folded_ms": 999},
)
THEN = FOLDED | {"newest_ms": 21_000, "folded_ms": 1_000}
NO_ANSWER = "no canary's answer"


def test_a_canary_is_asked_until_its_first_add_is_folded(
    aws: AwsAccount,
) -> None:
    within_s = canary.bound_s(75)
    assert within_s == 270

    def ask(*answers: Any) -> float:
        aws.canary = {HOME: list(answers)}
        return canary.wait_for("ledger-dev-canary", HOME, within_s)

    assert ask(LATE, LATER, THEN) == aws.now_s == 2 * POLL_S
    for failure, says in (
        (LATE, r"is not folded \(canary-late\)"),
        (refused("TooManyRequestsException", "Rate Exceeded"), "Rate Exceeded"),
        (ReadTimeoutError(endpoint_url="https://lambda"), "timeout"),
        (
            {"errorMessage": "not authorized to perform dynamodb:PutItem"},
            "functions-failing.*PutItem",
        ),
        ({"errorType": "none"}, NO_ANSWER),
        ("hello", NO_ANSWER),
        (FOLDED | {"folded_ms": "never"}, NO_ANSWER),
    ):
        assert ask(LATE, failure, THEN) == 2 * POLL_S
        with pytest.raises(CheckFailed, match=f"after 270 s: .*{HOME}.*{says}"):
            ask(failure)
    aws.steps.clear()
    with pytest.raises(
        CheckFailed, match=r"added 32 changes and read another difference \(value-wrong\)"
    ):
        ask(WRONG, FOLDED)  # never asked again
    assert aws.steps == [f"canary {HOME}"]


def test_an_engine_here_gets_a_zip_for_this_machine() -> None:
    assert all(
        deploy.runs_here(f"http://{host}:4566") for host in ("127.0.0.1", "localhost", "[::1]")
    )
    assert not any(map(deploy.runs_here, ("https://vpce.example.com", "")))


def test_a_deployment_knows_the_counter_of_the_canaries() -> None:
    assert table_shape.CANARY == COUNTER
