"""Deploy and remove on an account: the order of what is changed, and what is refused before anything is."""

import re
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from infra import canary, deploy, parameters, table_shape
from infra.aws import DeploymentRefused
from infra.canary import POLL_S, CheckFailed
from infra.deploy import COUNTS, DeploymentStopped
from infra.deployment import deployment
from infra.table_stack import STACK_POLL_S, STACK_WAIT_S
from ledger import items, tokens
from ledger.errors import Unavailable
from ledger.lane import directory
from ledger.limit import Limit, Shape
from ledger.requests import Put
from ledger.values import Delta, Lane
from service.canary.handler import COUNTER
from tests.infra import template
from tests.infra.aws import FOLDED, HOME, OTHER, QUEUES, TABLE_STACK, THIRD, AwsAccount, aws, refused

__all__ = ["aws"]  # the fixture

BOTH = f"{HOME} {OTHER}"
SEATS = 'limits={"seats:":{"ceiling":100,"region":"eu-west-1"}}'
CREATED = [f"create {HOME}", f"update {HOME}, protected"]
CREATED_BOTH = [f"create {BOTH}", f"update {BOTH}, protected"]


def service_in(*regions: str) -> list[str]:
    return [step for region in regions for step in (f"deploy {region}", f"canary {region}")]


def test_the_table_comes_first_then_a_region_after_the_other_and_the_shape_last_and_once(aws: AwsAccount) -> None:
    shards = 'shards={"stock:":4}'
    assert aws.deploy(BOTH, shards) == [*CREATED_BOTH, *service_in(HOME, OTHER), "shape"]
    assert aws.shape == Shape((HOME, OTHER), {"stock:": 4})
    assert aws.deploy(BOTH, shards) == service_in(HOME, OTHER)


def test_a_region_more_is_in_the_shape_before_its_canary_is_asked(aws: AwsAccount) -> None:
    aws.deploy(HOME)
    steps = [f"update {BOTH}, protected", *service_in(HOME), f"deploy {OTHER}", "shape", f"canary {OTHER}"]
    assert aws.deploy(BOTH) == steps
    assert aws.shape == Shape((HOME, OTHER), {}, 2)


def test_a_canary_that_fails_stops_the_deployment_and_says_what_is_deployed_where(aws: AwsAccount) -> None:
    aws.canary = {HOME: [FOLDED | {"read": False}]}
    says = rf"value-wrong.*{HOME} has what was deployed just now; left as it was: {OTHER}.*--no-check"
    with pytest.raises(DeploymentStopped, match=says):
        aws.deploy(BOTH)
    assert aws.steps == [*CREATED_BOTH, *service_in(HOME)]
    aws.canary = {}
    assert aws.deploy(BOTH) == [*service_in(HOME, OTHER), "shape"]
    aws.canary = {THIRD: [FOLDED | {"read": False}]}
    with pytest.raises(DeploymentStopped, match="all else is deployed"):
        aws.deploy(f"{BOTH} {THIRD}")
    assert aws.shape.regions == (HOME, OTHER, THIRD)
    assert aws.deploy(HOME + " " + OTHER + " " + THIRD, check=False) == [f"deploy {r}" for r in (HOME, OTHER, THIRD)]


REFUSED = [
    # REGIONS  PARAMS                                           what is said, of a table with shards and limits in both
    (BOTH, SEATS, "shards="),  # PARAMS was forgotten
    (BOTH, f'{SEATS} shards={{"stock:":8}}', "'stock:': 8"),
    (HOME, f'{SEATS} shards={{"stock:":4}}', "added in us-east-1"),
    (BOTH, 'shards={"stock:":4}', "limits"),
    (BOTH, 'shards={"stock:":4} ' + SEATS.replace("100", "99"), "set_limit"),
    (BOTH, 'shards={"stock:":4} ' + SEATS[:-1] + ',"seats:gig":{"floor":0}}', "would change the limit"),
    (BOTH, 'shards={"stock:":4} ' + SEATS[:-1] + ',"votes:":{"floor":0}}', "counters votes:x have changes"),
    # of any table
    (BOTH, "keepMs=60000", "keep_ms=60000 must be above read_time_max_ms=60000"),
    (BOTH, "shards=four", "LEDGER_SHARDS='four' cannot be read as shards"),
    (BOTH, 'limits={"":{"ceiling":9,"region":"eu-west-1"}}', "ledger:canary, the counter of the canaries"),
    (BOTH, "thresholds=low", "LEDGER_THRESHOLDS='low' cannot be read as thresholds"),
    (BOTH, 'thresholds={"stock:":[{"below":10,"region":"ap-south-1"}]}', "below-10 is told in no Region of regions="),
    (BOTH, "ringEverySeconds=300 allowedLatenessMs=235000", "a fold may be 600 s after its change"),
    (BOTH, "keepMs=70000 allowedLatenessMs=80000", "keepMs=70000 is below allowedLatenessMs=80000"),
    (BOTH, "allowedLatenessMs=1999", "allowedLatenessMs=1999 is not a number from 2000"),
    (BOTH, "changesConcurrency=1", "changesConcurrency=1 is not a number from 2 to 1000"),
    (BOTH, "sweepHours=none", "sweepHours=none is not a number"),
    (BOTH, "outcomes=yes", "outcomes=yes is not true or false"),
    (BOTH, "jwtIssuer=https://id.example", "jwtIssuer=https://id.example and jwtAudience=: both or none"),
    (BOTH, "jwtReadScope=read jwtWriteScope=add", "jwtIssuer names nobody"),
    (BOTH, "allowedPrefixes=stock:", "allowedPrefixes=stock: is not a JSON list of prefixes"),
    (BOTH, "producerAccounts=*", "nobody else would be let in"),
    (BOTH, "tableWrites=9..8", "tableWrites=9..8 is not a range of units a second"),
    (BOTH, "tableReads=5000", "tableReads=5000 is not a range of units a second"),
    (BOTH, "tableWrites=1..8 tableReads=..9", "a table is provisioned for both"),
    (BOTH, "tableWrites=1..8", "a table is provisioned for both"),
    (BOTH, "foldmin=8", "foldmin is no parameter of serverless.yml"),
    (BOTH, "alarmEmail=", "alarmEmail has no value"),
    (BOTH, "streamArn=arn:aws:x", "streamArn is given by the deployment."),
    (BOTH, "keepMs", "name=value"),
    (BOTH, "keepMs=90000 foldMin=8 keepMs=80000", "each name once"),
    ("", "", "one or more"),
    (f"{HOME} {HOME}", "", "different"),
]


def test_what_contradicts_itself_the_table_or_aws_is_refused_by_name_before_anything_is_changed(
    aws: AwsAccount,
) -> None:
    aws.deploy(BOTH, f'{SEATS} shards={{"stock:":4}}')
    lane = Lane(HOME, 0, "votes:x")
    for item in (directory.item_of(lane), items.delta_item(Delta(lane, tokens.last_of(0), 1))):
        aws.items.answer(Put(item))
    for regions, params, says in REFUSED:
        with pytest.raises(DeploymentRefused, match=re.escape(says)):
            aws.deploy(regions, params)
        assert aws.steps == [], params
    for name, stage in (("Ledger", "dev"), ("ledger", "dev_1")):
        with pytest.raises(DeploymentRefused, match="small letters"):
            deployment(name, stage, HOME, "")
    aws.items.answer = lambda request: (_ for _ in ()).throw(Unavailable("no answer"))
    with pytest.raises(DeploymentRefused, match="cannot be read"):
        aws.deploy(BOTH)


AGREED = [
    "",
    "ringEverySeconds=300 allowedLatenessMs=234000",
    "jwtIssuer=https://id.example jwtAudience=shop jwtReadScope=read jwtWriteScope=add reservedCanary=0",
    'producerAccounts=111122223333,444455556666 allowedPrefixes=["stock:", "votes:"] sweepHours=0.003',
    "tableWrites=1..8 tableReads=1..1",
    "tableWrites=..1000",
    'thresholds={"stock:": [{"below": 10}], "votes:": [{"above": 5, "name": "quorum"}]}',
]


def test_parameters_that_agree_are_deployed_and_a_limit_may_be_added(aws: AwsAccount) -> None:
    for params in AGREED:
        assert aws.deploy(HOME, params)[-2:] in (service_in(HOME), [f"canary {HOME}", "shape"]), params
    assert aws.deploy(HOME, SEATS) == [*service_in(HOME), "shape"]
    assert aws.shape == Shape((HOME,), {}, 2, limits={"seats:": Limit(ceiling=100, region=HOME)})


def test_every_parameter_that_is_a_number_or_a_switch_is_checked_and_what_a_region_has_different_too(
    aws: AwsAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    default = template.framework()["params"]["default"]
    numbers = {name for name, value in default.items() if isinstance(value, int)}
    assert numbers - set(parameters.NUMBERS) == {"foldMin", "logRetentionDays"}  # the library's, and cfn-lint's
    assert {name for name, value in default.items() if value in ("true", "false")} - set(parameters.SWITCHES) == {
        *("clean", "tellsThresholds")  # the library's, and the deployment's own
    }
    assert set(parameters.NUMBERS) | set(parameters.SWITCHES) | set(parameters.GIVEN) <= set(default)
    (tmp_path / "regions.yml").write_text("none: {}\ndev:\n  us-east-1:\n    workConcurrency: 2000\n")
    monkeypatch.setattr(parameters, "REGIONAL", tmp_path / "regions.yml")
    aws.deploy(HOME)
    with pytest.raises(DeploymentRefused, match="workConcurrency=2000 is not a number"):
        aws.deploy(BOTH)


def test_each_region_is_given_all_of_them_and_its_own_stream_and_whether_it_reports_thresholds() -> None:
    given = deployment("ledger", "dev", f"{BOTH} {THIRD}", 'keepMs=90000 shards={"a": 2}')
    found = {"name": "ledger", "regions": f"{HOME},{OTHER},{THIRD}", "streamArn": "stream", "tellsThresholds": "false"}
    assert given.params_of(HOME, "stream") == {**found, "keepMs": "90000", "shards": '{"a": 2}'}
    for thresholds, told in (
        ("{}", ["false", "false"]),
        ('{"stock:":[{"below":10}]}', ["true", "false"]),
        (f'{{"stock:":[{{"below":10,"region":"{OTHER}"}}]}}', ["false", "true"]),
        (f'{{"stock:":[{{"below":10,"region":"{OTHER}"}},{{"below":5}}]}}', ["true", "true"]),
    ):
        target = deployment("ledger", "dev", BOTH, f"thresholds={thresholds}")
        assert [target.params_of(region)["tellsThresholds"] for region in (HOME, OTHER)] == told


def test_a_forgotten_table_name_does_not_send_the_service_to_another_table(aws: AwsAccount) -> None:
    aws.service_is_in(HOME, {"TableName": "restored"})
    with pytest.raises(DeploymentRefused, match="has the table restored, and this deployment ledger-dev"):
        aws.deploy(HOME)
    assert aws.steps == []
    assert aws.deploy(HOME, switch_table=True)[0] == CREATED[0]


def test_a_new_account_that_can_reserve_nothing_is_refused_and_what_is_kept_already_counts(aws: AwsAccount) -> None:
    for most in (10, 100):
        aws.limits = dict.fromkeys(aws.limits, most)
        with pytest.raises(DeploymentRefused, match=f"reservedCanary=1: .* {most} .*Say reservedCanary=0.*Nothing was"):
            aws.deploy(HOME)
        assert aws.steps == []
    aws.limits = {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 101}
    aws.deploy(HOME)
    aws.limits["UnreservedConcurrentExecutions"] = 100
    assert aws.deploy(HOME) == service_in(HOME)


def test_what_waits_in_any_queue_of_any_region_keeps_every_region(aws: AwsAccount) -> None:
    aws.deploy(BOTH)
    for region, queue, attribute in [(r, q, a) for r in (HOME, OTHER) for q in QUEUES.values() for a in COUNTS]:
        aws.waiting = {(region, queue, attribute): 3}
        with pytest.raises(DeploymentRefused, match=f"3 messages wait in {queue}: .*--drop-changes"):
            aws.remove(BOTH)
        assert aws.steps == []
    assert len(COUNTS) == 3  # visible, received, delayed
    assert aws.remove(BOTH, drop_changes=True) == [f"remove {HOME}", f"remove {OTHER}"]


def test_a_service_without_messages_goes_and_the_table_is_kept(aws: AwsAccount) -> None:
    aws.deploy(BOTH)
    assert aws.remove(HOME) == [f"remove {HOME}"]
    assert aws.remove(BOTH) == [f"remove {OTHER}"]
    assert aws.said[-1] == "kept: the table ledger-dev with all its replicas, and its stack ledger-dev-table"
    assert [*aws.stacks] == [(HOME, TABLE_STACK)]
    assert aws.replicas


def test_the_table_is_made_once_protected_then_and_has_each_replica_once(aws: AwsAccount) -> None:
    for replicating, regions, steps in (
        (True, [HOME, OTHER], CREATED_BOTH),
        (True, [HOME], [*CREATED, f"update {BOTH}, protected"]),
        (False, [HOME, OTHER], [*CREATED_BOTH, f"replica {OTHER}"]),  # which the engine's stack leaves out
    ):
        aws.forget()
        aws.replicating = replicating
        for each in (regions, [HOME, OTHER], [HOME, OTHER]):
            aws.deploy_table(*each)
        assert aws.steps == steps
        assert aws.stacks[HOME, TABLE_STACK]["EnableTerminationProtection"] is True


def refused_table(aws: AwsAccount, says: str, *regions: str) -> None:
    with pytest.raises(DeploymentRefused, match=says):
        aws.deploy_table(*regions)


def test_a_first_deployment_that_failed_is_mended_by_the_same_command_unless_there_is_a_table(aws: AwsAccount) -> None:
    aws.ends = ["ROLLBACK_COMPLETE"]
    refused_table(aws, r"Table: an SCP denies it.*deleted with it.*the same command again", HOME, OTHER)
    aws.stacks[HOME, TABLE_STACK]["EnableTerminationProtection"] = True  # one that an earlier version made
    aws.replicas = {OTHER: [OTHER]}
    refused_table(aws, f"ledger-dev in {OTHER}. Nothing was changed. Turn off", HOME, OTHER)
    aws.replicas, aws.ends = {}, ["DELETE_FAILED"]
    refused_table(aws, "is DELETE_FAILED, which only a person ends", HOME, OTHER)
    aws.stacks[HOME, TABLE_STACK]["StackStatus"] = "ROLLBACK_COMPLETE"
    aws.deploy_table(HOME, OTHER)
    assert aws.steps == [CREATED_BOTH[0], "delete", "delete", *CREATED_BOTH]


def test_a_table_that_is_not_protected_yet_is_put_right_by_the_same_command(aws: AwsAccount) -> None:
    aws.ends = ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
    refused_table(aws, "The table is as it was before", HOME)
    aws.deploy_table(HOME)
    assert aws.steps == [*CREATED, CREATED[1]]
    aws.deploy_table(HOME, OTHER, deletion_protection=False)
    assert aws.steps[3:] == [f"update {HOME}", f"update {BOTH}"]  # a Region is an update of nothing else


def test_what_aws_still_does_is_waited_for_and_a_time_out_says_that_it_goes_on(aws: AwsAccount) -> None:
    aws.polls = 3
    aws.deploy_table(HOME)
    aws.stacks[HOME, TABLE_STACK]["busy"] = ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"] * 5  # of an earlier command
    aws.deploy_table(HOME)
    assert aws.steps == CREATED
    aws.polls = 2 * STACK_WAIT_S // STACK_POLL_S
    refused_table(aws, r"still UPDATE_IN_PROGRESS after 1800 s.*the same command again", HOME, OTHER)
    aws.polls, aws.states = 0, {OTHER: "CREATING"}
    refused_table(aws, r"not active after 1800 s: ACTIVE, replicas .*'CREATING'.*goes on", HOME, OTHER)
    aws.states = {}
    aws.deploy_table(HOME, OTHER)
    assert aws.steps == [*CREATED, f"update {BOTH}, protected"]


def test_other_regions_a_stack_that_waits_for_a_person_and_a_table_of_somebody_else_are_refused_untouched(
    aws: AwsAccount,
) -> None:
    aws.replicas = {OTHER: [OTHER]}
    refused_table(aws, "no stack ledger-dev-table", HOME, OTHER)
    assert aws.steps == []
    aws.forget()
    aws.deploy_table(HOME, OTHER)
    for regions, says in (
        ([HOME], "never taken out"),
        ([HOME, THIRD], "never taken out"),
        ([OTHER, HOME], "name that Region first"),
        ([HOME, THIRD, OTHER], "in this order"),
        ([HOME, OTHER, THIRD, "eu-north-1"], "one Region at a time"),
    ):
        refused_table(aws, says, *regions)
    for state in ("REVIEW_IN_PROGRESS", "ROLLBACK_FAILED", "UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED", "A_NEW_STATE"):
        aws.stacks[HOME, TABLE_STACK]["StackStatus"] = state
        refused_table(aws, f"is {state}, which only a person ends", HOME, OTHER, THIRD)
    assert aws.steps == CREATED_BOTH


LATE, LATER = FOLDED | {"newest_ms": 1_000, "folded_ms": None}, FOLDED | {"newest_ms": 11_000, "folded_ms": 999}
THEN = FOLDED | {"newest_ms": 21_000, "folded_ms": 1_000}
NO_ANSWER = "no canary's answer"


def test_a_canary_is_asked_until_what_it_added_first_is_folded_whatever_fails_meanwhile(aws: AwsAccount) -> None:
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
        ({"errorMessage": "not authorized to perform dynamodb:PutItem"}, "functions-failing.*PutItem"),
        ({"errorType": "none"}, NO_ANSWER),
        ("hello", NO_ANSWER),
        (FOLDED | {"folded_ms": "never"}, NO_ANSWER),
    ):
        assert ask(LATE, failure, THEN) == 2 * POLL_S
        with pytest.raises(CheckFailed, match=f"after 270 s: .*{HOME}.*{says}"):
            ask(failure)
    aws.steps.clear()
    with pytest.raises(CheckFailed, match=r"added 32 changes and read another difference \(value-wrong\)"):
        ask(FOLDED | {"read": False}, FOLDED)  # never asked again
    assert aws.steps == [f"canary {HOME}"]


def test_an_engine_on_this_machine_gets_a_zip_for_this_machine_and_the_canarys_counter_is_the_functions() -> None:
    assert all(deploy.runs_here(f"http://{host}:4566") for host in ("127.0.0.1", "localhost", "[::1]"))
    assert not any(map(deploy.runs_here, ("https://vpce.example.com", "")))
    assert table_shape.CANARY == COUNTER
