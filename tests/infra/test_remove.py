"""`remove`: the service goes and the table stays, and no change or outcome that waits is thrown away."""

from typing import Any

import pytest

from infra import deploy, framework
from infra.deployment import Deployment
from infra.table_stack import DeploymentRefused

HOME, OTHER = "eu-west-1", "us-east-1"
QUEUES = {"ChangesQueueUrl": "changes", "ChangesDeadLetterQueueUrl": "changes-dlq", "OutcomesQueueUrl": "outcomes"}
VISIBLE, HIDDEN, DELAYED = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Account:
    """Services by Region, as their stacks' outputs; messages by Region, queue and attribute."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.outputs = {HOME: dict(QUEUES), OTHER: dict(QUEUES)}
        self.waiting: dict[tuple[str, str, str], int] = {}
        self.removed: list[str] = []
        self.said: list[str] = []
        monkeypatch.setattr(framework, "check_tools", lambda: None)
        monkeypatch.setattr(framework, "run", self.run)
        monkeypatch.setattr(deploy, "_account", lambda regions: "111122223333")
        monkeypatch.setattr(deploy, "client", self.client)
        monkeypatch.setattr(deploy, "say", self.said.append)
        monkeypatch.setattr(Deployment, "outputs", lambda target, region: self.outputs.get(region))

    def run(self, command: str, stage: str, region: str, params: Any) -> None:
        assert (command, stage) == ("remove", "dev")
        self.removed.append(region)

    def client(self, service: str, region: str) -> Any:
        assert service == "sqs", "nothing else is asked: no table, no stack of one"
        self.region = region
        return self

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> Any:
        return {
            "Attributes": {each: str(self.waiting.get((self.region, QueueUrl, each), 0)) for each in AttributeNames}
        }

    def remove(self, **options: Any) -> None:
        deploy.remove(stage="dev", regions=f"{HOME} {OTHER}", name="ledger", params="", **options)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    return Account(monkeypatch)


@pytest.mark.parametrize("attribute", [VISIBLE, HIDDEN, DELAYED])
@pytest.mark.parametrize("queue", QUEUES.values())
@pytest.mark.parametrize("region", [HOME, OTHER])
def test_what_waits_in_any_queue_of_any_region_keeps_every_region(
    account: Account, region: str, queue: str, attribute: str
) -> None:
    account.waiting[region, queue, attribute] = 3
    with pytest.raises(DeploymentRefused, match=f"3 messages wait in {queue}: .*--drop-changes"):
        account.remove()
    assert account.removed == []
    account.remove(drop_changes=True)
    assert account.removed == [HOME, OTHER]


def test_a_service_without_messages_goes_and_the_table_is_kept(account: Account) -> None:
    del account.outputs[HOME]["OutcomesQueueUrl"]  # there is such a queue only where it was asked for
    account.remove()
    assert account.removed == [HOME, OTHER]
    assert account.said[-1] == "kept: the table ledger-dev with all its replicas, and its stack ledger-dev-table"


def test_a_region_without_the_service_is_passed_by(account: Account) -> None:
    del account.outputs[HOME]
    account.remove()
    assert account.removed == [OTHER]
    assert f"no service in {HOME}" in account.said
