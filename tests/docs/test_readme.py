"""What the README and the pages in docs/ say is held against the code."""

import ast
import hashlib
import json
import re
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from compactor import Compactor
from lab.histories import explore
from lab.histories.casts.lanes import NAIVE_CASTS
from ledger import Ledger, Threshold
from ledger.core import items, tokens
from ledger.core.checks import AHEAD_MAX_MS, KEY_BYTES_MAX, to_ms
from ledger.core.entries import ENTRIES_MAX
from ledger.core.limit import Limit, Shape
from ledger.core.ranges import CHANGE_MAX
from ledger.core.settings import FOLD_MAX_LIMIT, SHARDS_MAX, Settings
from ledger.core.values import PACK_SPAN_MS, Delta, Lane, Segment
from ledger.gate import items as gate_items
from ledger.gate.gate import LOWEST, Gate
from ledger.gate.items import Filed
from ledger.lane.add import pack_of
from ledger.tables.memory import MemoryTable
from service.thresholds.crossings import Crossing, cross
from tests.docs.pages import DOCS, RECIPES, ROOT, blocks, prose, rows
from tests.service.support import METRICS

README = ROOT / "README.md"
DATA_MODEL = DOCS / "data-model.md"
GATES = DOCS / "gates.md"
SETTINGS = DOCS / "settings.md"
OTHERS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "lab/spec/README.md",
    "tests/README.md",
)
PAGES = sorted([README, *(ROOT / name for name in OTHERS), *DOCS.rglob("*.md")])
LANE = Lane("eu-west-1", 0, "stock:85123A")


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def left() -> MemoryTable:
    """A table with the change of the data model's example, folded."""
    settings, table = Settings(table="counters", region="eu-west-1", fold_min=1), MemoryTable()
    at = datetime(2010, 12, 1, 8, 26, tzinfo=UTC)
    Ledger(settings, table=table).add("stock:85123A", -6, idempotency_key="536365/1", at=at)
    Compactor(settings, tables={"eu-west-1": table}).compact("stock:85123A")
    return table


def test_the_data_models_rows_are_those_its_example_leaves() -> None:
    written = {
        (key.pk, key.sk): {
            name: next(iter(value.values()))
            for name, value in item.items()
            if name not in ("pk", "sk")
        }
        for key, item in left().items.items()
    }
    shown: dict[tuple[str, str], dict[str, Any]] = {}
    for _, pk, sk, attributes in rows(DATA_MODEL, "item | `pk` | `sk` | attributes"):
        pairs = dict(pair.split(" = ") for pair in code(attributes))
        shown[code(pk)[0], code(sk)[0]] = pairs
    for item in (*written.values(), *shown.values()):
        for name, value in item.items():
            of_the_run = "now" if name.endswith("_ms") else value
            item[name] = f"0x{value.hex()}" if isinstance(value, bytes) else of_the_run
    assert shown == written


def test_the_obvious_designs_traces_are_those_found() -> None:
    page = (DOCS / "traces.txt").read_text()
    for cast in NAIVE_CASTS:
        trace = "\n".join(explore.explore(cast).trace)
        assert re.sub(r"delta#eu-west-1#0#c[/ ]", "", trace) in page


def test_the_readmes_figures_are_what_its_commands_printed() -> None:
    page = (DOCS / "figures.txt").read_text()
    quoted = re.findall(r"^- `(make [^`]+)`: (.+)$", README.read_text(), re.MULTILINE)
    assert len(quoted) > 2
    for command, printed in quoted:
        _, _, below = page.partition(command)
        assert below, command
        assert [
            figure for figure in re.findall(r"\d[\d,]*", printed) if figure not in below
        ] == [], command


def test_the_comparison_in_the_readme_is_a_part_of_the_page() -> None:
    first = " | the same change again counts once"

    def table(page: Path) -> dict[str, dict[str, str]]:
        """The cells by design and heading."""
        (head,) = re.findall(rf"^\| {re.escape(first)} \| (.*) \|$", page.read_text(), re.M)
        names = [first, *head.split(" | ")]
        return {
            design: dict(zip(names, cells, strict=True)) for design, *cells in rows(page, first)
        }

    shown, measured = table(README), table(DOCS / "comparison.md")
    assert next(iter(shown)) == "this library"
    assert shown == {
        design: {name: measured[design][name] for name in cells} for design, cells in shown.items()
    }


# anchors: mkdocs, in `make docs`
def test_every_file_and_folder_that_is_named_or_linked_exists() -> None:
    for page in PAGES:
        linked = re.findall(r"\]\((?!https?://)([^)#\s]+)", prose(page))
        assert [path for path in linked if not (page.parent / path).exists()] == [], page
        named = {
            name
            for name in code(prose(page))
            if re.fullmatch(r"\w+/([\w.-]+/)*([\w-]+\.\w+)?", name)
        }
        assert [name for name in sorted(named) if not (ROOT / name).exists()] == [], page


def test_how_it_hangs_together_names_what_its_files_have() -> None:
    """And is read in a few minutes."""
    page = DOCS / "how-it-hangs-together.md"
    text = page.read_text()
    file = r"\]\(\.\./([\w/]+)\.py\)"
    found = re.findall(rf"{file}: `(\w+)`", text)
    found += [(path, name) for name, path in re.findall(rf"`(\w+)`\s+of\s+\[[^\]]+{file}", text)]
    for path, name in found:
        assert hasattr(import_module(path.replace("/", ".")), name), (path, name)
    assert len(found) > 9
    drawn = re.findall(r"\b(?:\w+/)+\w+\.py\b", page.with_suffix(".svg").read_text())
    assert [name for name in drawn if not (ROOT / name).exists()] == []
    assert len(drawn) > 9
    assert len(text.split()) <= 900


def test_every_page_and_section_that_the_code_names_exists() -> None:
    rooms = [
        "compactor",
        "infra",
        "integrations",
        "lab",
        "ledger",
        "ledgerctl",
        "reader",
        "service",
        "simulator",
        "tests",
    ]
    files = [
        ROOT / "serverless.yml",
        *(path for room in rooms for path in (ROOT / room).rglob("*.*")),
    ]
    code = "".join(path.read_text() for path in files if path.suffix in (".py", ".yml"))
    for page, section in set(re.findall(r"\b(docs/[\w/-]+\.(?:md|txt))(?:#([\w-]+))?", code)):
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not section or section in slugs, (page, section)


def test_the_listed_metrics_are_all_that_functions_publish() -> None:
    assert (
        set(re.findall(r"^([A-Z]\w+) {2,}\w", (DOCS / "metrics.txt").read_text(), re.MULTILINE))
        == METRICS
    )


def test_every_recipe_is_in_the_index_and_every_target_exists() -> None:
    linked = set(
        re.findall(
            r"^- \[[^]]+\]\(([\w-]+\.md)\)", (RECIPES / "README.md").read_text(), re.MULTILINE
        )
    )
    assert linked == {page.name for page in RECIPES.glob("*.md")} - {"README.md"}
    named = {
        target
        for page in PAGES
        for target in re.findall(r"\bmake ([a-z]+)\b", "; ".join(code(prose(page))))
    }
    named |= set(
        re.findall(
            r"^make ([a-z]+)", "".join(text for page in PAGES for text in blocks(page, "sh")), re.M
        )
    )
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_the_settings_on_their_page_are_those_of_the_code() -> None:
    said: dict[str, Any] = {}
    variables = str(Settings.from_env.__doc__).replace("\n", " ")
    for name, default, _ in rows(SETTINGS, "setting"):
        (setting,) = code(name)
        said[setting] = (
            "required" if default == "required" else ast.literal_eval(default.strip("`"))
        )
        assert (
            f" {'AWS_REGION' if setting == 'region' else f'LEDGER_{setting.upper()}'}" in variables
        )
    held = {f.name: "required" if f.default is MISSING else f.default for f in fields(Settings)}
    held["shards"] = held["limits"] = held["thresholds"] = held["periods"] = {}
    assert said == held


def test_the_entries_in_the_data_model_are_those_of_the_code() -> None:
    first, second = (row[4].strip("`") for row in rows(DATA_MODEL, "counter"))
    pack, hex_ = blocks(DATA_MODEL, "hex")
    segment = Segment.of(LANE, second, 7, [Delta(LANE, first, -6), Delta(LANE, second, 10**18)])
    item = items.segment_item(segment)
    assert bytes.fromhex(hex_) == item["entries"]["B"]
    assert f"`{item['sk']['S']}`" in DATA_MODEL.read_text()
    at_ms = to_ms(datetime(2010, 12, 1, 8, 26, 4, tzinfo=UTC))
    later = Delta(LANE, tokens.keyed("stock:85123A", "536366/1", at_ms), 10**18)
    item = items.pack_item(pack_of([Delta(LANE, first, -6), later]))
    assert bytes.fromhex(pack) == item["entries"]["B"]
    assert f"`sk = {item['sk']['S']}`" in DATA_MODEL.read_text()
    page = " ".join(DATA_MODEL.read_text().split())
    assert f"from 1 to {ENTRIES_MAX:,} of them" in page
    assert f"last token are {PACK_SPAN_MS:,} ms apart at most" in page


def test_the_data_models_tokens_and_json_are_the_codes() -> None:
    for counter, key, at, hashed, token in (
        [cell.strip("`") for cell in row] for row in rows(DATA_MODEL, "counter")
    ):
        at_ms = to_ms(datetime.fromisoformat(at))
        assert tokens.keyed(counter, key, at_ms) == token
        assert tokens.make(at_ms, hashlib.sha256(hashed.encode()).digest()[:10]) == token
    put, shape, *_ = [json.loads(block) for block in blocks(DATA_MODEL, "json")]
    delta = items.delta_item(Delta(LANE, "015JGGKGE064BG4X58772SZHBM", -6))
    assert (put["Item"], put["ConditionExpression"]) == (delta, "attribute_not_exists(pk)")
    assert shape == items.shape_item(Shape(("eu-west-1", "us-east-1"), {"stock:": 4}))


def test_the_limits_in_the_data_model_are_those_of_the_code() -> None:
    limits = {row[0]: row[1] for row in rows(DATA_MODEL, "what")}
    default = {f.name: f.default for f in fields(Settings)}
    assert limits["idempotency key"].startswith(f"1 to {KEY_BYTES_MAX:,} bytes")
    assert (CHANGE_MAX, AHEAD_MAX_MS) == (10**18, 5 * 60_000)
    assert limits["change"].startswith("magnitude at most 10^18")
    assert limits["`at`"] == "from 1970 to five minutes ahead"
    assert (
        limits["entries of a segment"]
        == f"{default['fold_max']:,} by default, at most {FOLD_MAX_LIMIT:,}"
    )
    assert limits["shards of a counter"] == f"1 to {SHARDS_MAX:,}"


def test_every_attribute_in_the_data_model_is_one_of_the_code() -> None:
    table = left()
    settings = Settings(table="counters", region="eu-west-1")
    # writes the clean note
    Compactor(settings, tables={"eu-west-1": table}).compact("stock:85123A")
    written = {name for item in table.items.values() for name in item}
    token = tokens.make(1, bytes(10))
    gate = replace(Gate.new(LANE, Limit(-1, 1, LANE.region)), carried=1, took=1, carried_before=1)
    of_gates = [gate_items.gate_item(gate), gate_items.late_item(LANE, token, 1, 1)]
    of_gates.append(gate_items.filed_item(Filed(LANE, token, 1, LOWEST, {token: 1})))
    of_gates.append(items.shape_item(Shape((LANE.region,), {}, is_strong=True)))
    written |= {
        name for item in of_gates for name, value in item.items() if next(iter(value)) in "NSB"
    }
    crossing = Crossing.after(None, LANE.region, LANE.counter, Threshold(below=1), 0, 1)
    # one row of both
    written |= {str(action.path) for action in cross(None, crossing).actions} - {"above", "below"}
    described = DATA_MODEL.read_text() + GATES.read_text()
    tables = re.findall(r"^\| `(\w+)` \([NSB]\) \|", described, re.MULTILINE)
    # not in a new gate
    assert written == {*tables, "pk", "sk", "change", "entries", "outcome"} - {"slack"}
