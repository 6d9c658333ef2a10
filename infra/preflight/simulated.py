"""Checks by IAM's own simulation: may the caller deploy, and does each rendered role allow what it
must and no more.

Rule 1: A simulation makes nothing and costs nothing. IAM takes the caller's word for a request's
context (dynamodb:LeadingKeys): only a real request shows that DynamoDB fills it in.
Rule 2: The check simulates for the caller exactly the actions of infra/deployer/*.json, each on its
resources under its conditions, at each Region's endpoint: an organization may deny one Region
alone.
Rule 3: The check simulates for a role each key that a row of infra/rights.py names, of its own
Region and of another, at both endpoints; no key; and its own key beside a stranger's. IAM must deny
what no row allows. Where a condition of the template chooses, the check takes the first value: so a
policy is the most that the role may ever have.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from string import Template
from typing import Any, Literal, get_args

from infra import aws
from infra.build import ROOT
from infra.preflight.flight import MEND, OK, UNKNOWN, Findings, Flight
from infra.rights import ALLOWED, RIGHTS

NEVER = {
    f"dynamodb:{each}"
    for each in ("BatchWriteItem", "DeleteTable", "PartiQLSelect", "PartiQLUpdate", "Scan")
}
ACTIONS = NEVER.union(*(right.actions for rights in RIGHTS.values() for right in rights))
NO_QUEUES = {
    "table": "dynamodb:{at}:{account}:table/{table}",
    "StreamArn": "dynamodb:{at}:{account}:table/{table}/stream/x",
    "default": "events:{at}:{account}:event-bus/default",
    "log": "logs:{at}:{account}:log-group:/aws/lambda/{function}:log-stream:x",
}
KINDS = {"dynamodb:LeadingKeys": "stringList"}
AT_ONCE, SHOWN = 4, 5
# on what, as in infra/rights.py; at whose endpoint; partition keys
Question = tuple[str, str, tuple[str, ...]]
Document = Literal["table", "service"]  # two, because AWS takes 6,144 characters of each


class Values:
    """A template's values in a Region.

    What has no name yet has its logical name, as in infra/rights.py.
    """

    def __init__(self, flight: Flight, region: str) -> None:
        target, self._arn = flight.target, f"arn:{flight.partition}:%s:{region}:{flight.account}:%s"
        aws = {"Partition": flight.partition, "AccountId": flight.account, "Region": region}
        self._known: dict[str, Any] = {f"AWS::{name}": value for name, value in aws.items()}
        self._known |= {"Name": target.name, "Stage": target.stage, "TableName": target.table}
        self._known |= {"Regions": list(target.regions)}
        self._known["StreamArn"] = self._arn % ("dynamodb", f"table/{target.table}/stream/x")

    def of(self, value: Any) -> Any:
        match value:
            case {"Ref": name}:
                return self._known.get(name, name)
            case {"Fn::GetAtt": [name, "Arn"]}:
                return self._arn % ("sqs", name)
            case {"Fn::Sub": text}:
                return re.sub(r"\$\{([\w:]+)\}", lambda variable: self._known[variable[1]], text)
            case {"Fn::If": [_, chosen, _]}:
                return self.of(chosen)
            case dict():
                return {key: self.of(each) for key, each in value.items()}
            case list():
                return [self.of(each) for each in value]
        return value


def document(flight: Flight, which: Document, region: str = "*") -> Any:
    """A policy document of the deployer, for this deployment, in one Region or in all."""
    text = (ROOT / "infra" / "deployer" / f"{which}.json").read_text()
    names = {"Partition": flight.partition, "Account": flight.account, "Region": region}
    return json.loads(
        Template(text).substitute(names, Service=flight.target.service, Table=flight.target.table)
    )


def deployer(flight: Flight, region: str) -> Findings:
    pages = aws.client("iam", region).get_paginator("simulate_principal_policy")
    source = _source(flight)
    statements = [
        each
        for which in get_args(Document)
        for each in document(flight, which, region)["Statement"]
    ]
    denied, undecided = set[str](), set[str]()
    for statement in statements:
        conditions = {
            key: values
            for each in statement.get("Condition", {}).values()
            for key, values in each.items()
        }
        context = {key: [values[0].replace("*", "x")] for key, values in conditions.items()}
        context["aws:RequestedRegion"] = [region]
        for resource in statement["Resource"]:
            arn = resource if resource == "*" else resource.replace("*", "x")
            request = {"ActionNames": statement["Action"], "ResourceArns": [arn]}
            for result in _results(pages, context, PolicySourceArn=source, **request):
                if result["EvalDecision"] != "allowed":
                    (undecided if result.get("MissingContextValues") else denied).add(
                        result["EvalActionName"]
                    )
    count = sum(len(each["Action"]) for each in statements)
    if denied:
        which = f"{len(denied)} of {count} actions: {_some(denied)}"
        yield MEND, f"IAM denies {which}. Attach what ARGS=--policy= prints"
    if undecided:
        yield (
            UNKNOWN,
            (
                f"IAM may deny {len(undecided)} of {count} actions: only a request shows. "
                f"{_some(undecided)}"
            ),
        )
    if not denied | undecided:
        yield OK, f"IAM allows all {count} actions"


def _source(flight: Flight) -> str:
    """The user or role whose policies count; a session's name leaves out the role's path."""
    kind, _, name = flight.principal.split(":", 5)[5].partition("/")
    if kind != "assumed-role":
        return flight.principal
    return str(
        aws.client("iam", flight.home).get_role(RoleName=name.partition("/")[0])["Role"]["Arn"]
    )


def roles(flight: Flight) -> Findings:
    pages = aws.client("iam", flight.home).get_paginator("simulate_custom_policy")
    resources, values = flight.template(flight.home)["Resources"], Values(flight, flight.home)
    for role in RIGHTS:
        properties = resources[f"{role}Role"]["Properties"]
        managed = [
            resources[each["Ref"]]["Properties"] for each in properties.get("ManagedPolicyArns", [])
        ]
        policies = [
            json.dumps(values.of(each["PolicyDocument"]))
            for each in [*properties["Policies"], *managed]
        ]
        wrong = partial(_wrong, flight, pages, role, policies)
        first, *rest = _questions(flight, role)
        found = wrong(first)  # alone: a right that is missing is missing for all
        with ThreadPoolExecutor(AT_ONCE) as executor:
            found += chain.from_iterable(executor.map(wrong, rest))
        said = f"{role}: {len(rest) + 1} questions"
        wrong_in = f"{said}: {_some(found)}. Do not deploy, and report it"
        yield (MEND, wrong_in) if found else (OK, f"{said}, as infra/rights.py has it")


def _questions(flight: Flight, role: str) -> Iterator[Question]:
    def example(key: str, region: str) -> str:
        return key.format(home=region, here=region).replace("*", "x")

    endpoints = flight.target.regions[:2]
    keys = {key for rights in RIGHTS.values() for right in rights for key in right.keys}
    examples = sorted(
        {example(key, region) for key in keys for region in [*endpoints, "xx-other-1"][:2]}
    )
    own = [example(key, flight.home) for key in sorted(RIGHTS[role][0].keys)]
    for at in endpoints:
        yield from (
            ("table", at, pks)
            for pks in [(), *((each,) for each in examples), (*own, "stranger#x")]
        )
    others = {on for _, _, names, keys in ALLOWED if not keys for on in names.split()}
    yield from ((on, flight.home, ()) for on in sorted(others))


def _wrong(
    flight: Flight, pages: Any, role: str, policies: list[str], question: Question
) -> list[str]:
    """The actions on which IAM decides otherwise than the table of rights, in words."""
    on, at, pks = question
    function = flight.target.service + re.sub("(?=[A-Z])", "-", role).lower()
    name = NO_QUEUES.get(on, f"sqs:{{at}}:{{account}}:{on}")
    name = name.format(at=at, account=flight.account, table=flight.target.table, function=function)
    request: dict[str, Any] = {
        "PolicyInputList": policies,
        "ResourceArns": [f"arn:{flight.partition}:{name}"],
    }
    request["ActionNames"] = sorted(
        action for action in ACTIONS if action.split(":")[0] == name.split(":")[0]
    )
    context = {"aws:RequestedRegion": [at], "dynamodb:LeadingKeys": pks}
    found = []
    for result in _results(pages, context, **request):
        action, allowed = result["EvalActionName"], result["EvalDecision"] == "allowed"
        if allowed != any(right.uses(action, on, at, pks, flight.home) for right in RIGHTS[role]):
            decided = "is allowed and must not be" if allowed else "is denied and must be allowed"
            found.append(f"{action} {decided} on {' '.join(pks) or on} in {at}")
    return found


def _results(
    pages: Any, context: Mapping[str, Collection[str]], **request: Any
) -> Iterator[dict[str, Any]]:
    entries = [
        {
            "ContextKeyName": key,
            "ContextKeyType": KINDS.get(key, "string"),
            "ContextKeyValues": [*values],
        }
        for key, values in context.items()
        if values
    ]
    for page in pages.paginate(**request, ContextEntries=entries):
        yield from page["EvaluationResults"]


def _some(found: Collection[str]) -> str:
    more = len(found) - SHOWN
    return ", ".join(sorted(found)[:SHOWN]) + (f" and {more} more" if more > 0 else "")
