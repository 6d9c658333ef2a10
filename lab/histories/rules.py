"""The rules of the judges, each by what it says when it is broken; and a judge without one of them.

Rule 1: A rule is a statement that adds to what is wrong: it appends a message, or adds a list of
them, or the differences that `verify` found. What only hands on what another judge found (`extend`)
is none.
Rule 2: Each has a row in planted/rules.txt: a planted mistake, and a history (or a cast) that only
this rule finds wrong. Without the rule that history is right; `make mistakes ARGS=--rules` fails
where another rule finds it, too.
Rule 3: A rule for which no such mistake is known has a dash there, and what is thought to find the
same.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
JUDGES = (
    "stage/judge",
    "judges/gates",
    "judges/gates_end",
    "judges/periods",
    "judges/periods_end",
    "judges/sagas",
    "judges/service",
)
FIELD = "…"
"""Stands for a field of a message."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Where it stands: a file of this folder, and the first and last byte of its statement
    there.
    """

    judge: str
    says: str
    start: int
    end: int

    @property
    def file(self) -> str:
        return f"lab/histories/{self.judge}.py"

    def crippled(self, code: str) -> str:
        """The judge's code without it."""
        told = code.encode()
        return (told[: self.start] + b"pass" + told[self.end :]).decode()


@dataclass(frozen=True, slots=True)
class Row:
    """mistake: the name of the planted mistake; a dash, where none is known that needs this rule
    alone. at: the seed of the history, or the name of the cast; else what is thought to find the
    same."""

    rule: Rule
    mistake: str
    at: str

    @property
    def is_alone(self) -> bool:
        return self.mistake != "-"


def rules_of(judge: str) -> list[Rule]:
    """In the order of the file."""
    return rules_in(judge, (HERE / f"{judge}.py").read_text("utf-8"))


def rules_in(judge: str, code: str) -> list[Rule]:
    starts = [0]
    for line in code.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in ast.walk(ast.parse(code)):
        says = _said(node)
        if (
            says is not None
            and isinstance(node, ast.stmt)
            and node.end_lineno
            and node.end_col_offset
        ):
            start, end = (
                starts[node.lineno - 1] + node.col_offset,
                starts[node.end_lineno - 1] + node.end_col_offset,
            )
            found.append(Rule(judge, says, start, end))
    return sorted(found, key=lambda rule: rule.start)


def _said(node: ast.AST) -> str | None:
    """What a statement adds to what is wrong, if it is a rule."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(to, "append"), [message])) if ast.unparse(to).endswith(
            "wrong"
        ):
            return _text(message)
        case ast.AugAssign(to, ast.Add(), ast.ListComp(message)) if ast.unparse(to).endswith(
            "wrong"
        ):
            return _text(message)
        case ast.AugAssign(to, ast.Add(), ast.Attribute(_, "differences")) if ast.unparse(
            to
        ).endswith("wrong"):
            return "what verify finds"
    return None


def _text(message: ast.expr) -> str:
    match message:
        case ast.JoinedStr(parts):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else FIELD for part in parts
            )
        case ast.Constant(text):
            return str(text)
    return ast.unparse(message)


def rows() -> list[Row]:
    """Those of planted/rules.txt. Raises KeyError where a row's rule is no more."""
    known = {(rule.judge, rule.says): rule for judge in JUDGES for rule in rules_of(judge)}
    lines = (HERE / "planted" / "rules.txt").read_text("utf-8").splitlines()
    judge, found = "", []
    for line in filter(None, lines):
        if " | " not in line:
            judge = line
            continue
        says, mistake, at = (part.strip() for part in line.split(" | "))
        found.append(Row(known[judge, says], mistake, at))
    return found
