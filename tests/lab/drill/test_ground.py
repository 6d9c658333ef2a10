"""What the drill deploys."""

from infra.deployment import deployment
from lab.drill.ground import PARAMS, REGION
from lab.e2e.deployed import NAME, STAGE


def test_the_parameters_of_the_drill_are_those_of_a_deployment_to_its_one_region() -> None:
    said = " ".join(f"{name}={value}" for name, value in PARAMS.items())
    assert deployment(NAME, STAGE, REGION, said).regions == (REGION,)
