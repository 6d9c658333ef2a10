"""One break from its beginning to its end: quiet, broken, in alarm, mended, quiet.

Rule 1: It begins only when no alarm is in alarm; one that still is after QUIET_MAX_S is told, and nothing was broken.
Rule 2: An alarm has as long as its own periods and threshold need, three times; then it did not cross.
Rule 3: It is over when no alarm is in alarm for CALM_S on end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lab.drill.breaks import Break
from lab.drill.crossing import crosses, datapoints
from lab.drill.ground import FASTER, Ground
from lab.drill.measured import measurable
from lab.drill.watched import Alarm, alarms_of

QUIET_MAX_S, CALM_S, PAUSE_S = 240.0, 6.0, 1.0
SHOW_S = 60
"""What an alarm has at least: visits, and a message that comes again, are not faster."""


@dataclass(frozen=True, slots=True)
class Row:
    """`value`: the newest datapoint when it crossed, or at the end; None: there was none."""

    alarm: Alarm
    value: float | None
    crossed: bool
    after_s: float


@dataclass(slots=True)
class Course:
    """What one break showed."""

    broken: Break
    rows: list[Row] = field(default_factory=list)
    also: set[str] = field(default_factory=set)
    mended_s: float | None = None
    wrong: list[str] = field(default_factory=list)


class Watcher:
    """Judges the alarms of what was deployed, while the ground takes its turns."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        found = {name: alarm.faster(FASTER) for name, alarm in alarms_of(ground.template()).items()}
        self.alarms: Mapping[str, Alarm] = {name: alarm for name, alarm in found.items() if measurable(alarm)}
        self.unmeasured = sorted(found.keys() - self.alarms.keys())

    def look(self) -> dict[str, float | None]:
        """Those in alarm now, with their newest datapoint."""
        self._ground.turn()
        found = {name: self.points(alarm) for name, alarm in self.alarms.items()}
        return {name: points[-1] for name, points in found.items() if crosses(self.alarms[name], points)}

    def points(self, alarm: Alarm) -> list[float | None]:
        return datapoints(alarm, self._ground.meter.samples, time.time())

    def until_quiet(self, say: Callable[[str], None]) -> tuple[dict[str, float | None], float]:
        """Those that are still in alarm at the end, and how long it took."""
        began = time.monotonic()
        calm_since = None
        before: set[str] = set()
        while True:
            found = self.look()
            if found.keys() != before:
                before = set(found)
                say(f"  in alarm: {', '.join(sorted(before)) or 'none'}")
            now = time.monotonic()
            calm_since = None if found else calm_since or now
            if calm_since is not None and now - calm_since >= CALM_S:
                return {}, calm_since - began
            if now - began > QUIET_MAX_S:
                return found, now - began
            time.sleep(PAUSE_S)


def course_of(broken: Break, ground: Ground, watcher: Watcher, say: Callable[[str], None]) -> Course:
    course = Course(broken)
    early, _ = watcher.until_quiet(say)
    if early:
        course.wrong.append(f"in alarm before anything was broken: {', '.join(sorted(early))}")
        return course
    ground.add(f"{broken.name}-before")
    say(f"{broken.text}")
    broken.do(ground)
    ground.add(f"{broken.name}-while")
    _see(course, watcher, say)
    broken.mend(ground)
    say("mended")
    left, took_s = watcher.until_quiet(say)
    if left:
        course.wrong.append(f"{broken.name}: mended, and still in alarm: {', '.join(sorted(left))}")
    else:
        course.mended_s = took_s
    return course


def _see(course: Course, watcher: Watcher, say: Callable[[str], None]) -> None:
    """Until every alarm of the break has crossed, or its time is over."""
    began = time.monotonic()
    waiting = {name: watcher.alarms[name] for name in course.broken.alarms}
    while waiting:
        time.sleep(PAUSE_S)
        found = watcher.look()
        after_s = time.monotonic() - began
        course.also |= found.keys() - set(course.broken.alarms)
        for name, alarm in list(waiting.items()):
            if name in found or after_s > _most_s(alarm):
                value = found[name] if name in found else watcher.points(alarm)[-1]
                course.rows.append(Row(alarm, value, name in found, after_s))
                say(f"  {name}: {'crossed' if name in found else 'NOT crossed'}, {value}")
                del waiting[name]
    course.wrong += [f"{course.broken.name}: {row.alarm.name} did not cross" for row in course.rows if not row.crossed]
    loud = course.also & set(course.broken.quiet)
    course.wrong += [f"{course.broken.name}: {name} crossed, and must not" for name in sorted(loud)]


def _most_s(alarm: Alarm) -> float:
    return SHOW_S + 3 * alarm.period_s * alarm.periods
