"""Who takes part in a run: writers, readers, and compactors in each Region; and how far they have
come.

Rule 1: A process that starts again knows its generation. The server that forks them loads this
module, so that a restart costs little; it connects to nothing and starts no thread.
Rule 2: A process that ends by itself fails the run, unless it is a writer that has done its share.
"""

import logging
from collections import Counter
from collections.abc import Callable

from lab.engines.children import CONTEXT, Children
from lab.run import compacts
from lab.run import readers as reads
from lab.run import writers as writes
from lab.run.plan import READERS, REGIONS, SLOTS, WRITERS, Plan

TWINS = 2
STOP_TIMEOUT_S = 2.0


def begin(plan: Plan, main: Callable[..., None], *arguments: object) -> None:
    """What a process does first: it is quiet about tables without a shape."""
    logging.disable(logging.WARNING)
    main(plan, *arguments)


class Processes:
    """Enters everyone. `compactors` and `others` are the names of the processes."""

    def __init__(self, plan: Plan, children: Children) -> None:
        self._plan, self._children = plan, children
        self._reached, self._stop = CONTEXT.RawArray("q", SLOTS), CONTEXT.RawValue("b", 0)
        self._generations: Counter[str] = Counter()
        self._mains: dict[str, Callable[[int], None]] = {}
        shared = (self._reached, self._stop)
        self._writers = [
            self._enter(f"writer {n}", writes.main, n, after=shared) for n in range(WRITERS)
        ]
        readers = [self._enter(f"reader {n}", reads.main, n, after=shared) for n in range(READERS)]
        self.others = [*self._writers, *readers]
        self.compactors = [
            self._enter(f"compactor {region} {twin}", compacts.main, region, twin)
            for region in REGIONS
            for twin in range(TWINS)
        ]

    def restart(self, name: str) -> None:
        """Starts the process of that name, in the place of one that was killed."""
        self._generations[name] += 1
        self._mains[name](self._generations[name])

    @property
    def sent(self) -> int:
        """How many changes the writers have sent, without the latest of each thread."""
        return sum(reached // SLOTS for reached in self._reached)

    def writing(self) -> bool:
        """Whether any writer has something left to send."""
        return any(self._children.alive(name) for name in self._writers)

    def mostly_asked(self) -> bool:
        """Whether half of the writing threads have sent all of their share."""
        middle: int = sorted(self._reached)[SLOTS // 2]
        return middle + SLOTS >= self._plan.changes

    def check(self) -> None:
        """Raises RuntimeError if a process has failed."""
        for name in (*self.others, *self.compactors):
            code = self._children.exit_code(name)
            if code not in (None, 0):
                raise RuntimeError(f"{name} ended by itself, with exit code {code}")

    def dismiss(self) -> None:
        """Lets writers and readers finish what they are at, for a moment, and ends everyone."""
        self._stop.value = 1
        for name in self.others:
            self._children.join(name, STOP_TIMEOUT_S)
        for name in (*self.others, *self.compactors):
            self._children.kill(name)

    def _enter(
        self,
        name: str,
        main: Callable[..., None],
        *arguments: object,
        after: tuple[object, ...] = (),
    ) -> str:
        self._mains[name] = lambda generation: self._children.start(
            name, begin, self._plan, main, *arguments, generation, *after
        )
        self.restart(name)
        return name
