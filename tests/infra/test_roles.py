"""What each role may do to which items: exactly this table, by a small IAM evaluator; all else is refused."""

import fnmatch
import json
from itertools import product
from typing import Any

from tests.infra.roles import HOME, OTHER, THIRD, VALUES, allowing, statements_of, table_in
from tests.infra.template import listed, of_type

ROLES = ("AddFromQueue", "Api", "Ring", "Compact", "Sweep", "Canary")
ACTIONS = (
    *("GetItem", "BatchGetItem", "Query", "Scan", "PartiQLSelect", "ConditionCheckItem"),
    *("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"),
)
REGIONS = (HOME, OTHER, THIRD)
KINDS = ("delta#{}#0#c", "fold#{}#0#c", "gate#{}#0#c", "past#{}#0#c", "hold#{}#0#c", "lane#{}#255", "sweep#{}")
CANARIES = (
    "delta#{}#0#ledger:canary",
    "delta#{}#1#ledger:canary",
    "delta#{}#0#x#ledger:canary",
    "fold#{}#0#ledger:canary",
)
KEYS = ("shape", *(key.format(region) for key in (*KINDS, *CANARIES, "crossing#{}#c") for region in REGIONS))
POLICY_CHARACTERS = 6_144

ALLOWED = [
    # roles               actions                         at the endpoint of   partition keys
    ("AddFromQueue Api", "PutItem PartiQLInsert", "home", "delta#*"),  # a fail-over retry keeps its lane
    ("AddFromQueue Api", "PutItem UpdateItem", "each", "gate#{here}#*"),
    ("AddFromQueue Api", "PartiQLInsert", "each", "past#{here}#* hold#{here}#*"),
    ("AddFromQueue Api", "PartiQLDelete", "each", "hold#{here}#*"),
    ("AddFromQueue Api", "GetItem Query", "each", "gate#{here}#* past#{here}#* hold#{here}#*"),
    ("AddFromQueue Api", "BatchGetItem", "each", "gate#* fold#*"),  # copies; without a gate, in any lane
    ("AddFromQueue Api", "Query", "each", "delta#*"),  # a gate is made only where nothing was added
    ("AddFromQueue Compact Sweep", "GetItem", "home", "shape"),
    ("Api", "GetItem BatchGetItem Query", "home", "delta#* fold#* gate#* past#* shape"),
    ("Api", "Query", "home", "lane#*"),  # the replica has every Region's
    ("Ring", "BatchGetItem PartiQLInsert", "home", "lane#{home}#*"),
    ("Compact", "GetItem Query", "home", "delta#{home}#* fold#{home}#* shape"),
    ("Compact", "PutItem", "home", "fold#{home}#* lane#{home}#*"),  # a lane's first commit names it
    ("Compact", "DeleteItem PartiQLDelete", "home", "delta#{home}#*"),
    ("Compact", "GetItem", "each", "fold#{home}#*"),  # clean asks the other Regions
    ("Compact", "BatchGetItem Query", "home", "delta#* fold#* gate#*"),  # values, where it reports thresholds
    ("Compact", "BatchGetItem UpdateItem", "home", "crossing#{home}#*"),
    ("Sweep", "Query", "home", "lane#* hold#{home}#*"),
    ("Sweep", "BatchGetItem", "home", "gate#{home}#*"),
    ("Sweep", "GetItem PutItem", "home", "sweep#{home}"),
    ("Canary", "PutItem", "home", "delta#{home}#0#ledger:canary"),
    ("Canary", "GetItem BatchGetItem Query", "home", "delta#*#ledger:canary fold#*#ledger:canary shape"),
]
ENDPOINTS = {"home": (HOME,), "each": (HOME, OTHER)}


def is_expected(role: str, action: str, region: str, key: str | None) -> bool:
    return key is not None and any(
        role in roles.split() and action in actions.split() and region in ENDPOINTS[where]
        and any(fnmatch.fnmatchcase(key, each.format(home=HOME, here=region)) for each in keys.split())
        for roles, actions, where, keys in ALLOWED
    )  # fmt: skip


def test_a_role_allows_what_its_function_asks_for_and_nothing_else(service: dict[str, Any]) -> None:
    for request in product(ROLES, ACTIONS, REGIONS, (*KEYS, None)):
        role, action, region, key = request
        allowed = allowing(service, role, f"dynamodb:{action}", table_in(region), region, (key,))
        assert bool(allowed) == is_expected(*request), request


def test_what_reaches_every_region_names_those_of_the_table(service: dict[str, Any]) -> None:
    """A resource in any Region stands beside a condition on it; the text is as long for thirty Regions as for one."""
    roles = of_type(service, "AWS::IAM::Role").values()
    wide = [
        each
        for role in roles
        for each in statements_of(service, role)
        if any(":dynamodb:*:" in resource for resource in listed(each["Resource"]))
    ]
    assert len(wide) > 4
    for statement in wide:
        assert statement["Condition"]["StringEquals"] == {"aws:RequestedRegion": VALUES["Regions"]}, statement["Sid"]
    (gates,) = of_type(service, "AWS::IAM::ManagedPolicy").values()
    assert len(json.dumps(gates)) < POLICY_CHARACTERS
