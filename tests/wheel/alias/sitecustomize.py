"""On PYTHONPATH this lets the repository's tests, as they are, test an installed wheel: `ledger` is
`exact_counter.ledger`, the same module object, also in child processes and in strings of `patch`.

It would hide an import that the build forgot to rewrite. So test_wheel.py runs the wheel without
it, beside modules of such names that raise.
"""

import os
import sys
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType

DOOR = "exact_counter"
PATH = os.environ["PYTHONPATH"].split(os.pathsep)
"""Has the wheel. A child without `-P` looks into its working directory, the clone, before that."""

BELOW = ("compactor", "ledger", "ledgerctl", "reader", "simulator")


class Same(InspectLoader):
    """Loads a module of the door under its name in the clone."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.module = import_module(f"{DOOR}.{spec.name}")
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # which importlib has just taken away

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> CodeType | None:  # for `python -m ledgerctl`
        spec = find_spec(f"{DOOR}.{fullname}")
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(spec.name)

    def is_package(self, fullname: str) -> bool:
        spec = find_spec(f"{DOOR}.{fullname}")
        return spec is not None and spec.submodule_search_locations is not None


class Alias(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname == DOOR:
            return PathFinder.find_spec(DOOR, PATH)
        if fullname.partition(".")[0] not in BELOW or find_spec(f"{DOOR}.{fullname}") is None:
            return None
        loader = Same()
        return ModuleSpec(fullname, loader, is_package=loader.is_package(fullname))


sys.meta_path.insert(0, Alias())
