"""The judge of last words: no error that leaves a call denies what a request of that very call
wrote.

Rule 1: it looks at what the call itself sent. What others send under the same name is their calls'
matter.
Rule 2: a decision (a refusal, a conflict, a hold that ended) is true of each attempt, so it may
follow a lost answer.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.histories.stage.judge import Judge
from ledger.core.actions import Set
from ledger.core.errors import NOT_WRITTEN, LedgerError, OutcomeUnknown
from ledger.core.requests import At, Program, Put, Request, Result, Update, Written
from ledger.core.running import through
from ledger.gate.gate import Gate, change_of
from ledger.gate.updates import HELD, RECENT


class Heard:
    """One call. several: it has several steps, so an error is of one of them, unless it says that
    nothing was written.

    sent: the tokens that a write of the call decided, or may have decided, because its answer was
    lost.
    """

    def __init__(self, *, several: bool = False) -> None:
        self._several = several
        self.sent: set[str] = set()

    def of(self, program: Program[Result]) -> Program[Result]:
        """The call's program, to which it listens."""

        def step(request: Request) -> Generator[Request, Any, Any]:
            try:
                answer = yield request
            except OutcomeUnknown:
                self.sent |= _tokens(request)
                raise
            if answer is None or isinstance(answer, Written):
                self.sent |= _tokens(request)
            return answer

        return through(program, step)

    def denies(self, error: LedgerError) -> bool:
        """Whether the error says that nothing of the call was written."""
        if isinstance(error, OutcomeUnknown) or error.is_decision:
            return False
        return not self._several or NOT_WRITTEN.strip() in str(error)


@dataclass(frozen=True, slots=True)
class Failed:
    """A call ended with an error. of: the tokens that it is of, where not all."""

    heard: Heard
    error: LedgerError
    of: tuple[str, ...] = ()


class LastWords(Judge):
    """gates: what stands in them now."""

    def __init__(self, gates: Mapping[Any, Gate], wrong: list[str]) -> None:
        self._gates, self.wrong = gates, wrong

    def at_answer(self, answer: object) -> None:
        """What the error denies that counts, or is held, in a gate."""
        if not isinstance(answer, Failed) or not answer.heard.denies(answer.error):
            return
        error, sent = answer.error, answer.heard.sent
        for gate in self._gates.values():
            there = {
                token for token, outcome in gate.recent.items() if change_of(outcome)
            } | gate.held.keys()
            self.wrong.extend(
                f"{token} is there, and its call ended with {type(error).__name__}: {error}"
                for token in sorted(there & sent & {*(answer.of or sent)})
            )


def _tokens(request: Request) -> set[str]:
    """The tokens that a write of a gate holds, or decides so that they count. The end of a hold
    that is over counts nothing: whoever needs its part ends it, and its owner may capture it
    meanwhile.
    """
    sets: list[tuple[Any, Any]] = []
    match request.request if isinstance(request, At) else request:
        case Put(gate) if RECENT in gate:
            decided = {name: gate[name]["M"] for name in (RECENT, HELD)}
            sets = [((name, token), n) for name, of in decided.items() for token, n in of.items()]
        case Update(_, actions):
            sets = [(action.path, action.value) for action in actions if isinstance(action, Set)]
    return {
        path[1]
        for path, value in sets
        if isinstance(path, tuple)
        and (path[0] == HELD or (path[0] == RECENT and change_of(int(value["N"]))))
    }
