"""The deployed service on an engine, in one Region: broken under the eyes of its alarms, mended,
fed and compared.

Rule 1: Time runs FASTER times as fast as the template's for alarms. Schedules are calls from here
then, because the engine's have minutes: their rules are disabled.
Rule 2: Each function reaches the table by a place of its own in the proxy, so that the proxy can be
one function's wrong role. The engine does not ask IAM.
Rule 3: A break begins only when no alarm is in alarm, and is over when none has been for CALM_S.
Rule 4: An alarm has as long as its own periods and threshold need, three times; then it did not
cross.
Rule 5: Only the API reads a counter at the end, and only the queue takes changes: as a user's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import Any

from lab.e2e import deployed, traffic
from lab.e2e.alarms import Alarm, alarms_of
from lab.e2e.breaks import QUIET, Break
from lab.e2e.deployed import TABLE
from lab.e2e.metrics import Meter, is_excused, is_measured
from lab.e2e.site import Site, until_empty
from lab.e2e.user import User
from lab.events import Event
from ledger.client.message import dumps
from ledger.core.values import Change

FASTER = 25
REGION = deployed.REGIONS[0]
CANARY_EVERY_S, SWEEP_EVERY_S = 300 / FASTER, 900 / FASTER
NOT_OURS = {"limits", "thresholds", "outcomes", "sweepSchedule", "sweepHours", "canarySchedule"}
PARAMS = {name: value for name, value in deployed.PARAMS.items() if name not in NOT_OURS} | {
    "ringEverySeconds": "1",
    # a ring is 8 s under way: less than a canary's threshold, so much faster
    "allowedLatenessMs": "2000",
}
QUEUES = ("changes", "changes-dlq", "work", "work-dlq", "failed")
FUNCTIONS = ("add-from-queue", "ring", "compact", "sweep", "canary")
QUIET_MAX_S, CALM_S, PAUSE_S, RECORDED_MAX_S, SETTLED_MAX_S = 240.0, 6.0, 1.0, 300, 60
SHOW_S = 60
"""What an alarm has at least: visits, and a message that comes again, are not faster."""


class Course:
    """`control`: of the proxy that is in front of the table at `table_endpoint`."""

    def __init__(self, site: Site, control: Connection, table_endpoint: str) -> None:
        self._site, self._control = site, control
        (self._lambda,) = site.aws("lambda").values()
        (logs,) = site.aws("logs").values()
        self._meter = Meter(site.endpoint_url, REGION, logs)
        self._sent: list[Event] = []
        self._pool = ThreadPoolExecutor(2)
        self._canary: Future[Any] | None = None
        self._next_canary = self._next_sweep = 0.0
        self._take_over(table_endpoint)
        self._alarms = self._judged()

    def play(self, breaks: Sequence[Break], events: Sequence[Event]) -> None:
        """Every break, with a share of the events before it and one while it lasts; then every
        counter is read.
        """
        shares = (events[number :: 2 * len(breaks)] for number in range(2 * len(breaks)))
        for broken in breaks:
            if loud := self._until_quiet():
                self._site.wrong.append(f"in alarm before {broken.name}: {loud}")
                break
            self._add(next(shares))
            self._site.say(broken.text)
            self._turn(broken, breaks=True)
            self._add(next(shares))
            self._watch(broken)
            self._turn(broken, breaks=False)
            self._site.say("mended")
        if loud := self._until_quiet():
            self._site.wrong.append(f"mended, and still in alarm: {loud}")
        self._judge_the_end()
        self._pool.shutdown(cancel_futures=True)

    def _judged(self) -> list[Alarm]:
        (stacks,) = self._site.aws("cloudformation").values()
        found = stacks.get_template(StackName=TABLE)["TemplateBody"]
        alarms = alarms_of(json.loads(found) if isinstance(found, str) else found, FASTER)
        parts = {f"{TABLE}-{name}" for name in (*QUEUES, *FUNCTIONS, "api")}
        judged = [alarm for alarm in alarms if is_measured(alarm, parts)]
        excused = [alarm for alarm in alarms if alarm not in judged and is_excused(alarm)]
        self._site.wrong += [
            f"{alarm}: its metric is not measured"
            for alarm in alarms
            if alarm not in [*judged, *excused]
        ]
        self._site.say(
            f"watching {len(judged)} alarms; not measured here: "
            f"{', '.join(a.name for a in excused)}"
        )
        return judged

    def _take_over(self, table_endpoint: str) -> None:
        (events,) = self._site.aws("events").values()
        for rule in ("sweep", "canary"):
            events.disable_rule(Name=f"{TABLE}-{rule}")
        for function in FUNCTIONS:
            name = f"{TABLE}-{function}"
            variables = self._lambda.get_function_configuration(FunctionName=name)["Environment"][
                "Variables"
            ]
            variables |= {"LEDGER_ENDPOINT_URL": f"{table_endpoint}/{function}"}
            self._lambda.update_function_configuration(
                FunctionName=name, Environment={"Variables": variables}
            )

    def _turn(self, broken: Break, *, breaks: bool) -> None:
        """Break the service, or mend it."""
        if broken.off:
            name = f"{TABLE}-{broken.off}"
            (source,) = self._lambda.list_event_source_mappings(FunctionName=name)[
                "EventSourceMappings"
            ]
            self._lambda.update_event_source_mapping(UUID=source["UUID"], Enabled=not breaks)
        if broken.answer:
            self._control.send(("refuse", broken.answer if breaks else "", broken.refused))
        for queue, message in broken.letters if breaks else ():
            self._site.send(REGION, [message], queue)
        for queue in () if breaks else broken.emptied:
            self._site.drain(REGION, queue)

    def _add(self, events: Sequence[Event]) -> None:
        """Queue changes, of now."""
        now = datetime.now(UTC)
        changes = [Change(event.counter, event.change, event.key, now, REGION) for event in events]
        self._site.send(REGION, [dumps(change) for change in changes])
        self._sent += events

    def _in_alarm(self) -> dict[str, float | None]:
        """Those in alarm now, with their newest datapoint; before that, what the schedules would
        call is called.
        """
        now = time.monotonic()
        # one at a time, as deployed
        if self._next_canary <= now and (self._canary is None or self._canary.done()):
            self._next_canary = now + CANARY_EVERY_S
            # A canary that fails says so in the function's own lines; nobody reads the answer.
            self._canary = self._pool.submit(
                self._lambda.invoke, FunctionName=f"{TABLE}-canary", Payload=b"{}"
            )
        if self._next_sweep <= now:
            self._next_sweep = now + SWEEP_EVERY_S
            self._lambda.invoke(
                FunctionName=f"{TABLE}-sweep", InvocationType="Event", Payload=b"{}"
            )
        self._meter.measure()
        points = {
            alarm.name: alarm.points(self._meter.samples, time.time()) for alarm in self._alarms
        }
        return {
            alarm.name: points[alarm.name][-1]
            for alarm in self._alarms
            if alarm.crosses(points[alarm.name])
        }

    def _until_quiet(self) -> str:
        """The alarms that are still in alarm at the end."""
        began = calm_since = time.monotonic()
        before: set[str] = set()
        while time.monotonic() - calm_since < CALM_S:
            found = self._in_alarm()
            if found.keys() != before:
                before = set(found)
                self._site.say(f"  in alarm: {', '.join(sorted(before)) or 'none'}")
            now = time.monotonic()
            calm_since = now if found else calm_since
            if now - began > QUIET_MAX_S:
                return ", ".join(sorted(found)) or "one alarm or another"
            time.sleep(PAUSE_S)
        return ""

    def _watch(self, broken: Break) -> None:
        """Until every alarm that must see the break has crossed, or its time is over."""
        began = time.monotonic()
        waiting = [alarm for alarm in self._alarms if alarm.watches(broken.seen_in)]
        quiet = {
            alarm.name for alarm in self._alarms if alarm.watches(QUIET.difference(broken.seen_in))
        }
        loud: set[str] = set()
        if not waiting:
            self._site.wrong.append(f"{broken.name}: no alarm watches what it is seen in")
        while waiting:
            time.sleep(PAUSE_S)
            found, after_s = self._in_alarm(), time.monotonic() - began
            loud |= found.keys() & quiet
            for alarm in [alarm for alarm in waiting if alarm.name in found]:
                self._site.say(f"  {alarm} crossed at {found[alarm.name]} after {after_s:.0f} s")
                waiting.remove(alarm)
            for alarm in [alarm for alarm in waiting if after_s > SHOW_S + 3 * alarm.lasts_s]:
                self._site.wrong.append(f"{broken.name}: {alarm} did not cross")
                waiting.remove(alarm)
        self._site.wrong += [
            f"{broken.name}: {name} crossed, and must not" for name in sorted(loud)
        ]

    def _judge_the_end(self) -> None:
        """All is recorded, and is as it was sent."""
        self._site.wait("changes still wait", lambda: self._site.waiting("changes"), RECORDED_MAX_S)
        user = User(self._site)
        # what a break held up came late: it counts from the next settle on
        truth = traffic.truth(self._sent)
        self._site.wrong += until_empty(lambda: list(user.wrong_balances(truth)), SETTLED_MAX_S)
        user.judge_dead_letters({REGION: set()})
