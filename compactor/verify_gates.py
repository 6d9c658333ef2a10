"""The program `verify_gates`: a limited counter recounted from all that its gates decided; each lane at its home."""

from compactor.verify import LaneCheck
from ledger.gate.gates import Gates
from ledger.gate.recount import audited
from ledger.requests import Program


def verify_gates(gates: Gates) -> Program[tuple[LaneCheck, ...]]:
    """Raises GaveUp (others kept writing: ask again), LimitMismatch, DamagedItem and the TableErrors."""
    found = yield from audited(gates)
    return tuple(
        LaneCheck(lane, gate.value if gate else 0, 0, 0, tuple(f"{lane}: {each}." for each in wrong))
        for lane, (gate, wrong) in sorted(found.items())
    )
