"""The recipe for Terraform and CDK, on what was packaged: `make cdk` synthesises the app, and
Terraform, where there is one, evaluates what needs no provider."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.table_template import Capacity, template_of
from tests.docs.pages import RECIPES, ROOT, blocks
from tests.infra.conftest import PACKAGED
from tests.infra.template import of_type, source

PAGE, CDK, TERRAFORM = RECIPES / "terraform.md", ROOT / ".venv/cdk", shutil.which("terraform")
UPDATE = "dev-eu-west-1/cloudformation-template-update-stack.json"
REAL = [path for path in PACKAGED.split(os.pathsep) if path.endswith(UPDATE)]
CODE = {
    "S3Bucket": {"Ref": "ServerlessDeploymentBucket"},
    "S3Key": "serverless/ledger/dev/1-2026/service.zip",
}
STREAM = {"Ref": "StreamArn"}
SMALL: Any = json.loads(json.dumps(source()))
for properties in of_type(SMALL, "AWS::Lambda::Function").values():
    properties["Code"] = CODE
SERVICE = Path(REAL[0]).read_text() if REAL else json.dumps(SMALL, indent=2)
TABLE = template_of(2, Capacity())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout after `make package`, as far as the recipe looks."""
    files = {
        "lambda/service.zip": "the zip",
        "package/ledger-dev-table.json": TABLE,
        f"package/{UPDATE}": SERVICE,
    }
    for name, text in files.items():
        (tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / name).write_text(text)
    return tmp_path


def moved(code: Any, stream: Any = STREAM) -> Any:
    """The service's template, whose functions have their code elsewhere, and whose stream is
    known.
    """
    known = {json.dumps(STREAM): stream}

    def hook(each: Any) -> Any:
        return each | {"Code": code} if "Code" in each else known.get(json.dumps(each), each)

    return json.loads(SERVICE, object_hook=hook)


def run(folder: Path, *command: str, **environ: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


@pytest.mark.skipif(TERRAFORM is None, reason="there is no terraform on this machine")
def test_terraform_parses_the_recipe_and_moves_all_code(
    folder: Path,
) -> None:
    (page,) = blocks(PAGE, "hcl")
    table, service = (
        {*re.findall(r" (\w+) = ", given)} for given in re.findall(r"parameters +=( .*)", page)
    )
    assert (table | {"DeletionProtection"}, service) == (
        {*json.loads(TABLE)["Parameters"]},
        {"StreamArn"},
    )
    without_provider = (
        page.partition('resource "')[0] + 'output "template" { value = local.template }'
    )
    for text, commands in (
        (page, ["fmt -check -diff page.tf"]),
        (
            without_provider,
            ["init", "apply -auto-approve -var bucket=ours", "output -raw template"],
        ),
    ):
        (folder / "page.tf").write_text(text)
        said = [run(folder, str(TERRAFORM), *command.split()) for command in commands]
    made = json.loads(said[-1])
    key = made["Resources"]["ApiLambdaFunction"]["Properties"]["Code"]["S3Key"]
    assert re.fullmatch(r"[0-9a-f]{32}\.zip", key)
    assert made == moved({"S3Bucket": "ours", "S3Key": key})


@pytest.mark.skipif(
    not (CDK / ".made").exists() or not REAL, reason="`make package`, then `make cdk`"
)
def test_the_cdk_app_is_the_packaged_templates_with_their_code(
    folder: Path,
) -> None:
    run(
        folder,
        sys.executable,
        "-c",
        *blocks(PAGE, "python"),
        PYTHONPATH=str(CDK),
        CDK_OUTDIR=str(folder),
    )
    table, service, assets = (
        json.loads((folder / f"{name}.json").read_text())
        for name in ("ledger-dev-table.template", "ledger-dev.template", "ledger-dev.assets")
    )
    assert table["Resources"]["Table"]["DeletionPolicy"] == "Retain"
    code = service["Resources"]["ApiLambdaFunction"]["Properties"]["Code"]
    assert code["S3Key"] in {f"{name}.zip" for name in assets["files"]}
    (export,) = (each["Export"]["Name"] for each in table["Outputs"].values() if "Export" in each)
    assert service["Resources"] == moved(code, {"Fn::ImportValue": export})["Resources"]
