"""What a model is: its configurations, what it promises, and which mistakes must be found in it.

Rule 1: A model is one module, `<module>.tla`; a configuration is what its constants are that are
not as usual.
Rule 2: A mistake is a value of the constant `Mistake`: the rule that is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """usual: its constants. configurations: what is not as usual there. unfinished: those of them
    that are too large to be gone through; mistakes are looked for there.

    promises: the invariants of which a mistake must break one. reasons: other invariants, which say
    why they hold.
    mistakes: the rule that is left out: the configuration that finds it, and what is done instead.
    possible: the
    invariant that must fail: the configuration, and what happens then. only_mistaken: actions that
    only a mistake makes possible.
    """

    module: str
    symmetry: str
    usual: Mapping[str, str]
    configurations: Mapping[str, Mapping[str, str]]
    promises: tuple[str, ...]
    reasons: tuple[str, ...]
    mistakes: Mapping[str, tuple[str, str]]
    possible: Mapping[str, tuple[str, str]]
    unfinished: frozenset[str] = frozenset()
    only_mistaken: frozenset[str] = frozenset()
