"""The forms of parameters, read from the service's template: infra/parameters.yml.

Rule 1: The template has the ranges, values and patterns. CloudFormation refuses what does not fit
when the table is made already, so the deployer reads them and refuses before.
Rule 2: A sentence names the parameter as PARAMS does, with its value, and gives the template's
reason.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.build import ROOT

TEMPLATE = ROOT / "infra" / "parameters.yml"
PARAMETER = re.compile(r"\$\{.*(?:param|sls):(\w+)\}")
"""The Default of a template's parameter, which names the deployment's."""

Form = Mapping[str, Any]
"""A parameter, as CloudFormation describes it."""


class _Loader(yaml.SafeLoader):
    """Skips CloudFormation's tags; no parameter has one."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@cache
def load(path: Path) -> dict[str, Any]:
    """A YAML file, also one with CloudFormation's tags."""
    found: dict[str, Any] = yaml.load(path.read_text(), _Loader)
    return found


@cache
def template_forms() -> dict[str, Form]:
    """The forms in the template, by the deployment's names of the parameters."""
    named = (
        (PARAMETER.fullmatch(form["Default"]), form)
        for form in load(TEMPLATE)["Parameters"].values()
    )
    return {match[1]: form for match, form in named if match}


def misfits(name: str, value: str, form: Form) -> Iterator[str]:
    """Sentences on why a value has not this form."""
    values = [*map(str, form.get("AllowedValues", (value,)))]
    if value not in values:
        wanted = f"none of {', '.join(values)}" if len(values) > 2 else f"not {' or '.join(values)}"
        yield f"{name}={value} is {wanted}."
    elif "MinValue" in form and not _is_between(value, form["MinValue"], form["MaxValue"]):
        yield f"{name}={value} is not a number from {form['MinValue']} to {form['MaxValue']}."
    elif form["Type"] == "CommaDelimitedList":
        yield from _misfits_of_list(name, value, form)
    elif "AllowedPattern" in form and not re.fullmatch(form["AllowedPattern"], value):
        yield f"{name}={value} {form['ConstraintDescription']}."


def _is_between(value: str, least: float, most: float) -> bool:
    number = "[0-9]+" if isinstance(least, int) else r"[0-9]+(\.[0-9]+)?"
    return re.fullmatch(number, value) is not None and least <= float(value) <= most


def _misfits_of_list(name: str, value: str, form: Form) -> Iterator[str]:
    parts = value.split(",") if value else []
    if "AllowedPattern" in form:  # of each part; the template's lets "" pass, which stands for none
        for part in parts:
            if not part or not re.fullmatch(form["AllowedPattern"], part):
                yield f"{name}: {part!r} {form['ConstraintDescription']}."
    elif not all(parts):
        yield f"{name}={value} has an empty part: give one, or several with a comma between."
