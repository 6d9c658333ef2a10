"""Runs the Serverless Framework (osls, from node_modules) for one Region's service stack.

Rule 1: What it is told is in the arguments alone.
Rule 2: Its output goes straight to the terminal.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from infra.build import ROOT
from infra.table_stack import DeploymentRefused

PROGRAM = ROOT / "node_modules" / ".bin" / "serverless"
PACKAGED = ROOT / "build" / "package"
LINT_IGNORED = "W3005"  # the framework says that a function needs its role twice, by reference and by DependsOn


def check_tools() -> None:
    """Raises DeploymentRefused if node or the framework is missing."""
    if shutil.which("node") is None:
        raise DeploymentRefused("node is not on PATH: install Node.js 20.19 or later, with npm")
    if not PROGRAM.exists():
        raise DeploymentRefused("the Serverless Framework is not installed: run `npm ci`, or use the make targets")


def package(stage: str, region: str, params: Mapping[str, str]) -> Path:
    """Packages one Region without any call to AWS; the template's path."""
    directory = PACKAGED / f"{stage}-{region}"
    run("package", stage, region, params, "--package", str(directory.relative_to(ROOT)))
    return directory / "cloudformation-template-update-stack.json"


def lint(template: Path, region: str) -> None:
    """Raises DeploymentRefused unless cfn-lint finds nothing in a template."""
    program = str(Path(sys.executable).with_name("cfn-lint"))
    command = [program, "--ignore-checks", LINT_IGNORED, "--regions", region, "--template", str(template)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise DeploymentRefused(f"cfn-lint objects to {template.relative_to(ROOT)}; see above")


def run(command: str, stage: str, region: str, params: Mapping[str, str], *more: str) -> None:
    given = [argument for name, value in params.items() for argument in ("--param", f"{name}={value}")]
    arguments = [str(PROGRAM), command, "--stage", stage, "--region", region, *given, *more]
    environment = {**os.environ, "SLS_NOTIFICATIONS_MODE": "off"}
    if subprocess.run(arguments, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise DeploymentRefused(f"`serverless {command}` failed in {region}; its message is above")
