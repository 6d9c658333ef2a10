"""The service's template as the sources have it: CloudFormation's short tags spelled out, serverless.yml's includes
resolved. With LEDGER_PACKAGED (paths, as `make package` gives them) the framework's own output is read as well.
"""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
INCLUDE = re.compile(r"\$\{file\((infra/\w+\.yml)\)\}")
SECTIONS = ("Parameters", "Conditions", "Resources", "Outputs")


class _Loader(yaml.SafeLoader):
    pass


def _short_tag(loader: _Loader, suffix: str, node: Any) -> Any:
    match node:
        case yaml.ScalarNode():
            value: Any = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case _:
            value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_tag)


@cache
def load(path: Path) -> Any:
    """A YAML file with CloudFormation's tags."""
    return yaml.load(path.read_text(), _Loader)  # a SafeLoader


def framework() -> Any:
    """serverless.yml as it stands, includes unresolved."""
    return load(ROOT / "serverless.yml")


@cache
def source() -> dict[str, Any]:
    """One Region's template from serverless.yml and infra/; of the framework's own resources the functions alone."""
    config = framework()
    merged: dict[str, Any] = {section: {} for section in SECTIONS}
    for part in config["resources"]:
        include = INCLUDE.fullmatch(part) if isinstance(part, str) else None
        for section, content in (load(ROOT / include[1]) if include else part).items():
            if section in SECTIONS:
                assert not merged[section].keys() & content.keys(), "two files define the same name"
                merged[section].update(content)
    provider = config["provider"]
    for key, function in config["functions"].items():
        name = f"{key[0].upper()}{key[1:]}LambdaFunction"
        properties = {
            "Handler": function["handler"],
            "Runtime": provider["runtime"],
            "Architectures": [provider["architecture"]],
            "Timeout": function.get("timeout", provider["timeout"]),
            "Role": {"Fn::GetAtt": [function["role"], "Arn"]},
            "Environment": {"Variables": function.get("environment", {})},
        }
        more = merged["Resources"].get(name, {"Properties": {}})["Properties"]
        merged["Resources"][name] = {"Type": "AWS::Lambda::Function", "Properties": more | properties}
    return merged


@cache
def packaged() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The templates that the framework made, named by stage and Region."""
    paths = map(Path, filter(None, os.environ.get("LEDGER_PACKAGED", "").split(os.pathsep)))
    return tuple((path.parent.name, json.loads(path.read_text())) for path in paths)


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """Logical names and properties of all resources of one type."""
    resources = template["Resources"].items()
    return {name: resource.get("Properties", {}) for name, resource in resources if resource["Type"] == kind}


def target(value: Any) -> str:
    """The logical name behind a Ref or GetAtt."""
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
