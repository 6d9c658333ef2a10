"""Every program of the checkout answers --help, and refuses what it does not know before it does
anything.
"""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from _pytest.assertion.rewrite import AssertionRewritingHook

ROOT = Path(__file__).parent.parent
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
FOLDERS = ("infra", "lab", "ledgerctl", "service", "tests")
MAIN = 'if __name__ == "__main__":'
PROGRAMS = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__main__")
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if f"\n{MAIN}" in path.read_text()
)


Said = tuple[int, str, str]


def run(
    program: str, argument: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Said:
    """Exit code, output and errors of `python -m program argument`, in this process: another one
    takes a second.
    """
    monkeypatch.setattr(sys, "argv", [program, argument])
    # pytest's finder takes the modules of every distribution that brings a plugin: ours, too, after
    # `pip install .` in a clone. runpy cannot run what it finds.
    finders = [each for each in sys.meta_path if not isinstance(each, AssertionRewritingHook)]
    monkeypatch.setattr(sys, "meta_path", finders)
    monkeypatch.delitem(sys.modules, f"{program}.__main__", raising=False)  # found by that finder
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(program, run_name="__main__")
    return int(ended.value.code or 0), *capsys.readouterr()


def test_the_programs_are_found() -> None:
    known = {
        "infra.deploy",
        "lab.measure.bench",
        "lab.measure.compare",
        "lab.histories.explore",
        "lab.run",
    }
    assert known <= set(PROGRAMS)


@pytest.mark.filterwarnings("ignore:.* found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_says_its_usage_and_refuses_unknown_words(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(program, "--help", monkeypatch, capsys)
    assert (code, err) == (0, "")
    assert "usage:" in out.lower()
    code, out, err = run(program, "--nonsense", monkeypatch, capsys)
    assert (code, out) == (2, "")
    assert "usage:" in err.lower() or "--help" in err


def locked(name: str) -> dict[str, str]:
    """The packages of a lock: each pin with its hashes, without what asked for it and where."""
    text = (ROOT / "requirements" / name).read_text()
    text = re.sub(r"^ *#.*\n?| ;[^\\]*(?= \\)", "", text, flags=re.MULTILINE)
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    return {entry.partition("==")[0]: " ".join(entry.split()) for entry in entries}


def test_the_first_commands_need_a_small_part_of_the_packages() -> None:
    makefile = (ROOT / "Makefile").read_text()
    small, whole = locked("small.lock"), locked("dev.lock")
    assert small.items() <= whole.items()
    assert len(small) <= 25 < 100 < len(whole)
    first = re.search(r"^first:\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert first is not None
    assert re.findall(r"\S+/\.made", first[1]) == ["$(SMALL)/.made", "$(ENGINE)/.made"]
    for target in ("demo", "engine", "demo-web", "api", "simulate"):
        found = re.search(rf"^{target}:(.*) ## .*\n((?:[\t\w].*\n)+)", makefile, re.MULTILINE)
        assert found is not None
        needed, recipe = found.groups()
        assert needed.split() in (["$(SMALL)/.made"], ["first"])
        assert "$(SMALL)/bin/python -m " in recipe
        assert "$(BIN)" not in recipe


def test_the_path_of_a_clone_may_have_a_space() -> None:
    """Unquoted it is two paths, and `make dist` removed the first one."""
    makefile = (ROOT / "Makefile").read_text()
    lines = [line for line in makefile.splitlines() if "CURDIR" in line]
    assert len(lines) > 5
    for line in lines:
        outside = "".join(line.split('"')[::2])
        assert "CURDIR" not in outside, line
        assert not re.search(r"\brm\b", line), line


def test_ci_starts_every_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = re.sub(r"#.*", "", (ROOT / ".ci" / "run").read_text())
    started = set(re.findall(r"\b(?:make|asked) ([a-z0-9-]+)", commands))
    part_of_another = {"docs"}  # of check
    assert started > {"engine", "test", "dist"}
    assert targets - started == part_of_another


def test_a_forge_runs_ci_and_releases_what_make_dist_made() -> None:
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    steps = {
        name: [step.get("uses") or step["run"] for step in job["steps"]]
        for name, job in jobs.items()
    }
    assert steps["test"][-1] == "env -u GITHUB_ACTIONS .ci/run"
    assert steps["weekly"][-3:] == [
        f"env -u GITHUB_ACTIONS make {what}"
        for what in ("newest", "package cdk", "e2e ARGS=--breaks")
    ]
    assert (jobs["release"]["needs"], jobs["build"]["needs"]) == ("build", "test")
    assert "env -u GITHUB_ACTIONS make dist" in steps["build"]


def test_a_releases_notes_are_its_section_with_links_that_lead(tmp_path: Path) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    section = changelog.split("\n## ")[1]
    version = section.split()[0]
    (tmp_path / "CHANGELOG.md").write_text(changelog, "utf-8")
    steps = yaml.safe_load(WORKFLOW)["jobs"]["build"]["steps"]
    (command,) = (step["run"] for step in steps if "notes.md" in step.get("run", ""))
    forge = {"SERVER_URL": "https://forge.example", "REPOSITORY": "a/b", "REF_NAME": f"v{version}"}
    environment = {**os.environ, **{f"GITHUB_{name}": text for name, text in forge.items()}}
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=environment, check=True)
    notes = (tmp_path / "notes.md").read_text("utf-8")
    at_the_tag = f"](https://forge.example/a/b/blob/v{version}/docs/"
    assert notes.strip() == f"## {section}".strip().replace("](docs/", at_the_tag)
    assert notes.count("](") == notes.count(at_the_tag) > 0


def test_the_workflow_pins_actions_and_keeps_its_token() -> None:
    document = yaml.safe_load(WORKFLOW)
    assert document["permissions"] == {"contents": "read"}
    by_commit = re.findall(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\b", WORKFLOW)
    assert len(by_commit) == WORKFLOW.count("uses:") > 0
    for job in document["jobs"].values():
        checkouts = [
            step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")
        ]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        # it may write: then nothing of the clone, and no package, is there to run
        if "permissions" in job:
            assert checkouts == []
            commands = " && ".join(step["run"] for step in job["steps"] if "run" in step).split(
                " && "
            )
            assert {command.split()[0] for command in commands} <= {"cd", "sha256sum", "gh"}
