"""Lines for a terminal: broken between words, and never inside a command.

Rule 1: What stands in backticks is one word. A line that is a command goes on behind a backslash, so it can be copied.
Rule 2: A word that is wider than the terminal is left as it is.
"""

import re

from rich.console import Console
from rich.text import Text

WORD = re.compile(r"`[^`]*`\S*|\S+")
PART = re.compile(r"--\S+ (?:'[^']*'|[^\s'-]\S*)|[A-Z_]+='[^']*'|'[^']*'|\S+")
"""Of a command: an option with its value, what is quoted, or a word."""
COMMAND = re.compile(r"([A-Z_]+=('[^']*'|\S*) )*ledgerctl ")


def fitting(console: Console, text: str | Text) -> str | Text:
    """For a terminal, text is broken to its width; for a file or a pipe it is left as it is."""
    return folded(text, console.width) if console.is_terminal and isinstance(text, str) else text


def folded(text: str, width: int) -> str:
    """The text in lines of at most `width` columns, each indented as the one it was broken from."""
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    if COMMAND.match(line):
        return _joined(PART.findall(line), width, "  ", " \\")
    indent = line[: len(line) - len(line.lstrip())]
    return indent + _joined(WORD.findall(line), width, indent)


def _joined(words: list[str], width: int, indent: str, mark: str = "") -> str:
    lines = [words[0]]
    for word in words[1:]:
        if len(indent) + len(lines[-1]) + 1 + len(word) + len(mark) > width:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return f"{mark}\n{indent}".join(lines)
