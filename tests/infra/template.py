"""The service's template as the sources have it: CloudFormation's short tags spelled out,
serverless.yml's includes resolved.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent.parent
INCLUDE = re.compile(r"\$\{file\((infra/\w+\.yml)\)\}")
SECTIONS = ("Parameters", "Conditions", "Resources", "Outputs")


@cache
def load(path: Path) -> Any:
    """A YAML file with CloudFormation's tags."""
    return cfn_yaml.load(str(path))


def framework() -> Any:
    """serverless.yml as it stands, includes unresolved."""
    return load(ROOT / "serverless.yml")


@cache
def source() -> dict[str, Any]:
    """One Region's template from serverless.yml and infra/; of the framework's own resources the
    functions alone.
    """
    config = framework()
    merged: dict[str, Any] = {section: {} for section in SECTIONS}
    for part in config["resources"]:
        include = INCLUDE.fullmatch(part) if isinstance(part, str) else None
        for section, content in (load(ROOT / include[1]) if include else part).items():
            if section in SECTIONS:
                assert not merged[section].keys() & content.keys(), "two files define the same name"
                merged[section].update(content)
    for key, function in config["functions"].items():
        name = f"{key[0].upper()}{key[1:]}LambdaFunction"
        properties = {
            "Timeout": function.get("timeout", config["provider"]["timeout"]),
            "Role": {"Fn::GetAtt": [function["role"], "Arn"]},
        }
        more = merged["Resources"].get(name, {"Properties": {}})["Properties"]
        merged["Resources"][name] = {
            "Type": "AWS::Lambda::Function",
            "Properties": more | properties,
        }
    return merged


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """Logical names and properties of all resources of one type."""
    resources = template["Resources"].items()
    return {
        name: resource.get("Properties", {})
        for name, resource in resources
        if resource["Type"] == kind
    }


def target(value: Any) -> str:
    """The logical name behind a Ref or GetAtt."""
    return str(value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0])
