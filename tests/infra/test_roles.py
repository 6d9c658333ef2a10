"""What each role may do to which items, by a small IAM evaluator: allowed what its code asks for, and no more."""

import json
from typing import Any

from tests.infra.evaluator import HOME, OTHER, THIRD, VALUES, allowing, statements_of, table_in
from tests.infra.template import listed, of_type

DELTA, DELTA_ELSEWHERE = f"delta#{HOME}#0#c", f"delta#{OTHER}#0#c"
FOLD, FOLD_ELSEWHERE = f"fold#{HOME}#0#c", f"fold#{OTHER}#0#c"
CANARY, CANARY_ELSEWHERE = f"delta#{HOME}#0#ledger:canary", f"delta#{OTHER}#0#ledger:canary"
CANARY_FOLD, CANARY_FOLD_ELSEWHERE = f"fold#{HOME}#0#ledger:canary", f"fold#{OTHER}#0#ledger:canary"
SHAPE = "shape"
NAMES, NAMES_ELSEWHERE = f"lane#{HOME}#255", f"lane#{OTHER}#255"
PLACE, PLACE_ELSEWHERE = f"sweep#{HOME}", f"sweep#{OTHER}"
GATE, PAST, NOTE = (
    {region: f"{kind}#{region}#0#c" for region in (HOME, OTHER, THIRD)} for kind in ("gate", "past", "hold")
)
CROSSING, CROSSING_ELSEWHERE = f"crossing#{HOME}#c", f"crossing#{OTHER}#c"
DECIDES = ("AddFromQueue", "Api")
POLICY_CHARACTERS = 6_144

ALLOWED = [
    (function, action, region, pk)
    for functions, actions, region, pk in (
        ("AddFromQueue Api Compact Sweep Canary", "GetItem", HOME, SHAPE),
        *(
            (" ".join(DECIDES), actions, region, pk)
            for region in (HOME, OTHER)
            for actions, pk in (
                ("PutItem UpdateItem GetItem BatchGetItem", GATE[region]),
                ("BatchGetItem", GATE[THIRD]),  # copies
                ("PartiQLInsert Query GetItem", PAST[region]),
                ("PartiQLInsert PartiQLDelete Query GetItem", NOTE[region]),
                *(("Query", pk) for pk in (DELTA, DELTA_ELSEWHERE)),  # a gate is made only where nothing was added
                *(("BatchGetItem", pk) for pk in (FOLD, FOLD_ELSEWHERE)),  # without one, in any lane
            )
        ),
        ("Api", "BatchGetItem GetItem Query", HOME, GATE[OTHER]),
        ("Api", "Query", HOME, PAST[OTHER]),
        ("AddFromQueue", "PutItem", HOME, DELTA),
        ("AddFromQueue", "PartiQLInsert", HOME, DELTA_ELSEWHERE),  # a fail-over retry keeps its lane
        ("Api", "PutItem PartiQLInsert Query", HOME, DELTA),
        ("Api", "BatchGetItem", HOME, FOLD_ELSEWHERE),
        ("Api", "Query GetItem", HOME, FOLD),
        ("Api", "Query", HOME, NAMES),
        ("Api", "Query", HOME, NAMES_ELSEWHERE),  # the replica has every Region's
        ("Ring", "BatchGetItem PartiQLInsert", HOME, NAMES),
        ("Compact", "GetItem PutItem", HOME, FOLD),
        ("Compact", "Query PartiQLDelete DeleteItem", HOME, DELTA),
        ("Compact", "GetItem", OTHER, FOLD),  # clean asks the other Regions
        ("Compact", "PutItem", HOME, NAMES),  # a lane's first commit
        *(("Compact", "BatchGetItem", HOME, pk) for pk in (FOLD, FOLD_ELSEWHERE, GATE[HOME], GATE[OTHER])),  # the value
        *(("Compact", "Query", HOME, pk) for pk in (DELTA, DELTA_ELSEWHERE)),
        ("Compact", "BatchGetItem UpdateItem", HOME, CROSSING),
        ("Sweep", "Query", HOME, NAMES),
        ("Sweep", "Query", HOME, NAMES_ELSEWHERE),
        ("Sweep", "Query", HOME, NOTE[HOME]),
        ("Sweep", "BatchGetItem", HOME, GATE[HOME]),
        ("Sweep", "GetItem PutItem", HOME, PLACE),
        ("Canary", "PutItem Query", HOME, CANARY),
        ("Canary", "Query", HOME, CANARY_ELSEWHERE),  # a counter is the sum of its lanes in every Region
        ("Canary", "BatchGetItem GetItem Query", HOME, CANARY_FOLD),
        ("Canary", "BatchGetItem", HOME, CANARY_FOLD_ELSEWHERE),
    )
    for function in functions.split()
    for action in actions.split()
]
ROLES = ("AddFromQueue", "Api", "Ring", "Compact", "Sweep", "Canary")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
READS = ("GetItem", "BatchGetItem", "Query", "Scan", "PartiQLSelect", "ConditionCheckItem")
PLACES = [
    (region, pk)
    for region in (HOME, OTHER, THIRD)
    for pk in (DELTA, DELTA_ELSEWHERE, FOLD, FOLD_ELSEWHERE, NAMES, NAMES_ELSEWHERE, PLACE, None)
]
NEW_GATES = [
    (action, region, pk)
    for action, lanes in (("Query", (DELTA, DELTA_ELSEWHERE)), ("BatchGetItem", (FOLD, FOLD_ELSEWHERE)))
    for region in (HOME, OTHER)
    for pk in lanes
]
"""What is asked before a gate is made: each Region's replica, of the lanes of all."""

REFUSED = [
    *((role, "Scan", region, None) for role in ROLES for region in (HOME, OTHER)),
    *(
        ("AddFromQueue", action, region, pk)
        for action in READS
        for region, pk in PLACES
        if (action, region, pk) not in NEW_GATES
    ),
    *(("AddFromQueue", action, HOME, FOLD) for action in WRITES),
    *(("Api", action, HOME, pk) for action in WRITES for pk in (FOLD, NAMES, PLACE, None)),
    *(("Api", action, HOME, NOTE[OTHER]) for action in READS),
    *(("Api", action, HOME, DELTA) for action in ("UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLDelete")),
    *(
        (role, action, region, pk)
        for role in ("Ring", "Sweep")
        for action in (*READS, *WRITES)
        for region, pk in [(HOME, DELTA), (HOME, FOLD), (OTHER, NAMES), (OTHER, PLACE), (OTHER, NAMES_ELSEWHERE)]
    ),
    *((role, action, HOME, NAMES_ELSEWHERE) for role in ROLES for action in WRITES),  # written at home alone
    *(("Ring", action, HOME, NAMES) for action in WRITES if action != "PartiQLInsert"),  # it overwrites nothing
    *(("Compact", action, HOME, NAMES) for action in WRITES if action != "PutItem"),  # never removed
    *((role, action, HOME, NAMES) for role in ("AddFromQueue", "Api", "Sweep", "Canary") for action in WRITES),
    *((role, action, HOME, PLACE) for role in ROLES if role != "Sweep" for action in (*READS, *WRITES)),
    *(("Sweep", action, HOME, PLACE_ELSEWHERE) for action in (*READS, *WRITES)),
    *(("Sweep", action, HOME, pk) for action in WRITES for pk in (NAMES, GATE[HOME], NOTE[HOME])),
    *(("Sweep", action, HOME, NOTE[OTHER]) for action in READS),
    *(("Ring", action, HOME, SHAPE) for action in READS),
    *(("Compact", action, OTHER, pk) for action in WRITES for pk in (DELTA, FOLD, FOLD_ELSEWHERE, NAMES)),
    *(("Compact", action, HOME, pk) for action in WRITES for pk in (DELTA_ELSEWHERE, FOLD_ELSEWHERE)),
    *(("Compact", action, OTHER, pk) for action in READS for pk in (DELTA, FOLD_ELSEWHERE)),
    *((role, action, HOME, SHAPE) for role in ROLES for action in WRITES),
    *((role, action, HOME, CROSSING) for role in ROLES if role != "Compact" for action in (*READS, *WRITES)),
    *(("Compact", action, HOME, CROSSING) for action in WRITES if action != "UpdateItem"),
    *(("Compact", action, OTHER, pk) for action in (*READS, *WRITES) for pk in (CROSSING, CROSSING_ELSEWHERE)),
    *((role, action, HOME, CROSSING_ELSEWHERE) for role in ROLES for action in (*READS, *WRITES)),
    *(("Compact", action, HOME, DELTA) for action in WRITES if action not in ("PartiQLDelete", "DeleteItem")),
    *(("Compact", action, HOME, FOLD) for action in WRITES if action != "PutItem"),
    *(("Canary", action, HOME, pk) for action in (*READS, *WRITES) for pk in (DELTA, FOLD, GATE[HOME], NAMES)),
    *(("Canary", action, HOME, pk) for action in WRITES for pk in (CANARY_ELSEWHERE, CANARY_FOLD)),
    *(("Canary", action, HOME, CANARY) for action in WRITES if action != "PutItem"),
    *(("Canary", action, HOME, f"delta#{HOME}#{n}#ledger:canary") for action in WRITES for n in ("1", "0#x")),
    *(("Canary", action, OTHER, pk) for action in (*READS, *WRITES) for pk in (CANARY_ELSEWHERE, CANARY)),
    *((role, action, THIRD, pk) for role in ("Api", "Compact") for action in READS for pk in (DELTA, FOLD, None)),
    *((role, action, THIRD, GATE[THIRD]) for role in DECIDES for action in (*READS, *WRITES)),  # no replica is there
]
OF_GATES = {"gate": ("PutItem", "UpdateItem"), "past": ("PartiQLInsert",), "hold": ("PartiQLInsert", "PartiQLDelete")}
"""All that anybody may write of limited counters, each only at its own Region's endpoint."""

REFUSED += [
    (role, action, region, f"{kind}#{home}#0#c")
    for role in ROLES
    for kind, allowed in OF_GATES.items()
    for action in WRITES
    for region in (HOME, OTHER, THIRD)
    for home in (HOME, OTHER, THIRD)
    if role not in DECIDES or action not in allowed or region != home or region == THIRD
]


def _allows(service: dict[str, Any], function: str, action: str, region: str, pk: str | None) -> bool:
    return bool(allowing(service, function, f"dynamodb:{action}", table_in(region), region, (pk,)))


def test_what_reaches_every_region_names_those_of_the_table(service: dict[str, Any]) -> None:
    """A resource in any Region stands beside a condition on it; the text is as long for thirty Regions as for one."""
    wide = [
        statement
        for name, role in of_type(service, "AWS::IAM::Role").items()
        for statement in statements_of(service, role)
        if any(":dynamodb:*:" in resource for resource in listed(statement["Resource"]))
    ]
    assert len(wide) > 4
    for statement in wide:
        assert statement["Condition"]["StringEquals"] == {"aws:RequestedRegion": VALUES["Regions"]}, statement["Sid"]


def test_the_policy_of_gates_fits_a_policy(service: dict[str, Any]) -> None:
    (gates,) = of_type(service, "AWS::IAM::ManagedPolicy").values()
    assert len(json.dumps(gates)) < POLICY_CHARACTERS


def test_a_role_allows_what_its_function_asks_for(service: dict[str, Any]) -> None:
    assert [request for request in ALLOWED if not _allows(service, *request)] == []


def test_a_role_allows_nothing_else(service: dict[str, Any]) -> None:
    assert [request for request in REFUSED if _allows(service, *request)] == []
    asked = {(function, action) for function, action, _, _ in ALLOWED}
    for name, role in of_type(service, "AWS::IAM::Role").items():
        for statement in statements_of(service, role):
            for action in listed(statement["Action"]):
                if action.startswith("dynamodb:") and statement["Sid"] != "Follow":
                    assert (name.removesuffix("Role"), action.removeprefix("dynamodb:")) in asked, (name, action)
