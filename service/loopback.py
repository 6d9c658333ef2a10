"""Who may ask a server of the service on this computer: what ledger/core/loopback.py says."""

from ledger.core.loopback import HOST, OfLoopback, authorities, refusal

__all__ = ["HOST", "OfLoopback", "authorities", "refusal"]
