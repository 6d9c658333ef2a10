"""Who is interrupted in a read, by a signal whose handler raises or by Ctrl-C, breaks no later
read.

Rule 1: An exception is raised at each line, then at each instruction, that a read runs in the
cache, in the reader and in cachetools, one after the other: no test waits for a signal to come at
the right moment.
Rule 2: Only the lines of `with` are left out: `with` a lock takes it and gives it back in C, where
no signal comes.
Rule 3: Python 3.12 and later look for the handler of what a trace function raises at another
instruction than the one that was to run, so that they leave a `with` without its end; what a signal
raises they do not. There, and everywhere, signals come as they come, and raise where they find a
read.
"""

import asyncio
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import cachetools
import pytest

from ledger import Ledger, Settings
from ledger.tables.memory import MemoryTable
from reader import Reader, aio
from reader import cache as caches
from reader import reader as readers
from reader.aio import AsyncReader

SETTINGS = Settings(table="counters", region="eu-west-1")
FILES = (caches.__file__, readers.__file__, aio.__file__, str(Path(cachetools.__file__).parent))
TIMEOUT_S = 60  # bounds a hang alone
FOR_EVER_S = 1_000_000  # so that no bound of a wait hides that a thread waits for nobody


class Interrupted(Exception):
    """What the handler of a signal raises."""


@cache
def lines(file: str) -> list[str]:
    return Path(file).read_text().splitlines()


class Interruption:
    """Raises at the nth line, or instruction, that runs in FILES.

    `left` is above 0 afterwards if there were fewer.
    """

    def __init__(self, nth: int, event: str) -> None:
        self.left, self.event = nth, event

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(FILES):
            return None
        frame.f_trace_opcodes = self.event == "opcode"
        # what ends one has no line
        line = lines(file)[frame.f_lineno - 1].strip() if frame.f_lineno else "with "
        if event == self.event and not line.startswith(("with ", "async with ")):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise Interrupted
        return self.trace

    @contextmanager
    def here(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            yield
        except Interrupted:
            pass
        finally:
            sys.settrace(before)


def elsewhere(call: Callable[[], Any]) -> Any:
    """What a call answers, or raises, in another thread; fails where it does not end."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    return found[0] if found else "no answer"


def table(*counters: str) -> MemoryTable:
    made = MemoryTable()
    for counter in counters:
        Ledger(SETTINGS, table=made).add(counter, 1)
    return made


def answers(reader: Reader) -> list[int]:
    """The values of three counters, as they are remembered and as they are."""
    return [
        value for name in ("c", "d", "e") for value in (reader.value(name), reader.read(name).value)
    ]


CALLS: dict[str, Callable[[Reader], object]] = {
    "value": lambda reader: reader.value("c"),
    "values": lambda reader: reader.values(["c", "d", "e"]),
    "read": lambda reader: reader.read("d"),
}


TRACED = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="what a trace function raises leaves `with` open: rule 3"
)


@TRACED
@pytest.mark.parametrize("event", ["line", "opcode"])
@pytest.mark.parametrize("name", CALLS)
def test_every_later_read_answers(name: str, event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # so that a further balance takes another's place
    monkeypatch.setattr(caches, "COUNTERS_MAX", 2)
    monkeypatch.setattr(caches, "WAIT_S", FOR_EVER_S)
    stored, nth = table("c", "d", "e"), 0
    while True:
        nth += 1
        reader = Reader(SETTINGS, ttl=1_000, table=stored)
        reader.values(["d", "e"])
        interruption = Interruption(nth, event)
        with interruption.here():
            CALLS[name](reader)
        assert elsewhere(partial(answers, reader)) == [1] * 6, nth
        assert reader._cache.value._loading == {}
        if interruption.left > 0:
            break
    assert nth > 30


@pytest.mark.parametrize("name", CALLS)
def test_no_signal_breaks_a_later_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "COUNTERS_MAX", 2)
    monkeypatch.setattr(caches, "WAIT_S", FOR_EVER_S)
    stored, draws, came = table("c", "d", "e"), random.Random(7), 0

    def raises(_: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_filename.startswith(FILES):
            # No second one comes while the first is mended, as one would where coverage makes that
            # slow: it may leave a load that nobody makes, as the last test says.
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Interrupted

    before = signal.signal(signal.SIGALRM, raises)
    try:
        while came < 30:
            reader = Reader(SETTINGS, ttl=1_000, table=stored)
            reader.values(["d", "e"])
            # until one finds a read
            signal.setitimer(signal.ITIMER_REAL, draws.uniform(1e-5, 1e-3), 1e-4)
            try:
                for _ in range(300):
                    CALLS[name](reader)
            except Interrupted:
                came += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert elsewhere(partial(answers, reader)) == [1] * 6
            assert reader._cache.value._loading == {}
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings(
    "ignore:coroutine .* was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("event", ["line", "opcode"])
def test_every_later_read_of_a_task_answers(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "WAIT_S", FOR_EVER_S)

    async def read(interruption: Interruption) -> None:
        async with AsyncReader(SETTINGS, table=table("c")) as reader:
            with interruption.here():
                both = [asyncio.ensure_future(reader.value("c")) for _ in range(2)]
                _, waiting = await asyncio.wait(both, timeout=TIMEOUT_S)
            assert not waiting, interruption
            assert [type(each.exception()) for each in both].count(type(None)) >= 1
            assert await asyncio.wait_for(reader.value("c"), TIMEOUT_S) == 1
            assert (await asyncio.wait_for(reader.read("c"), TIMEOUT_S)).value == 1
            assert reader._cache._loading == {}

    nth = 0
    while True:
        nth += 1
        interruption = Interruption(nth, event)
        asyncio.run(read(interruption))
        if interruption.left > 0:
            break
    assert nth > 30


def test_a_load_that_never_ends_holds_no_other_thread_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two interruptions, one in the mend of the other, may leave a load that nobody makes."""
    monkeypatch.setattr(caches, "WAIT_S", 0.01)
    reader = Reader(SETTINGS, table=table("c"))
    reader._cache.value._loading["c"] = caches.Load()
    assert elsewhere(lambda: reader.value("c")) == 1
    assert reader._cache.value._loading == {}
