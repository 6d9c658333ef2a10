"""`python -m lab.drill` (`make drill`): deploys the service to an engine here, breaks it in each way, and mends it.

Rule 1: The exit code is 0 only when each break was told by its alarms, no alarm told anything before, every one was
quiet again after, and every counter is right at the end.
Rule 2: Nothing is left running.
"""

import os
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab.drill.breaks import BREAKS, Break
from lab.drill.ground import FASTER, PARAMS, REGION, Ground
from lab.drill.trouble import Course, Watcher, course_of
from lab.e2e import deployed
from lab.e2e.deployed import NotDeployed
from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import Engine, EngineMissing, end_on_signals
from lab.engines.proxy import OUTSIDE

COMPARED = {
    "GreaterThanThreshold": ">",
    "GreaterThanOrEqualToThreshold": ">=",
    "LessThanThreshold": "<",
    "LessThanOrEqualToThreshold": "<=",
}
NAMES = {each.name: each for each in BREAKS}


def main(only: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(NAMES)}.")] = None) -> None:
    """Break the service on an engine here, see its alarms cross, mend it.

    Exit code: 0 when all was told and all is right, 1 when not, 2 when it cannot run.
    """
    if unknown := set(only or ()) - NAMES.keys():
        raise typer.BadParameter(f"no break is named {', '.join(sorted(unknown))}")
    end_on_signals()
    console = Console(highlight=False, soft_wrap=True)
    try:
        courses, wrong, unmeasured = _drill(console, [NAMES[name] for name in only or NAMES])
    except (EngineMissing, NotDeployed) as error:
        console.print(f"[bold red]It cannot run:[/] {escape(str(error))}")
        raise typer.Exit(2) from None
    console.print(_table(courses))
    console.print(f"Not measured on this engine, so not judged: {', '.join(unmeasured)}.")
    wrong = [text for course in courses for text in course.wrong] + wrong
    for text in wrong:
        console.print(f"WRONG: {escape(text)}")
    if wrong:
        raise typer.Exit(1)
    console.print("[bold green]Every break was told, every alarm is quiet again, every counter is right.[/]")


def _drill(console: Console, breaks: list[Break]) -> tuple[list[Course], list[str], list[str]]:
    began = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - began:5.0f} s  {text}", markup=False)

    with Engine() as engine, Children() as children:
        os.environ.update(deployed.environment(engine.endpoint_url))
        told, endpoint = proxy.start(children, engine, 1, {}, item_by_item=True)
        say(f"deploying to one Region; an alarm's minute is {60 / FASTER:g} s here")
        deployed.run("deploy", engine.endpoint_url, f"{endpoint}/{OUTSIDE}", [REGION], PARAMS)
        ground = Ground(engine.endpoint_url, endpoint, told, say)
        try:
            watcher = Watcher(ground)
            say(f"watching {len(watcher.alarms)} alarms until none is in alarm")
            courses = [course_of(each, ground, watcher, say) for each in breaks]
            say("reading every counter")
            wrong = list(ground.wrong())
        finally:
            ground.refuse("")
            ground.close()
    return courses, wrong, watcher.unmeasured


def _table(courses: list[Course]) -> Table:
    table = Table(title=f"times of alarms are divided by {FASTER}")
    for heading in ("broken", "alarm", "metric", "value", "threshold", "", "after"):
        table.add_column(heading, overflow="fold")
    for course in courses:
        text = course.broken.text
        for row in course.rows:
            alarm = row.alarm
            metric = "math of " if alarm.expression else f"{alarm.measures[0].statistic} of "
            metric += ", ".join(each.metric.name for each in alarm.measures)
            value = "no data" if row.value is None else f"{row.value:,.0f}"
            bound = f"{COMPARED[alarm.comparison]} {alarm.threshold:,g}"
            crossed = "crossed" if row.crossed else "NOT crossed"
            table.add_row(text, alarm.name, metric, value, bound, crossed, f"{row.after_s:.0f} s")
            text = ""
        after = "" if course.mended_s is None else f"{course.mended_s:.0f} s"
        state = "mended: back to OK" if course.mended_s is not None else "NOT back to OK"
        also = f"also told: {', '.join(sorted(course.also))}" if course.also else ""
        table.add_row(text, "", also, "", "", state, after, end_section=True)
    return table


if __name__ == "__main__":
    typer.run(main)
