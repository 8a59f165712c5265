"""The campaign loses nothing in its quick form, and sees what is lost where a command is not careful."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from tests.campaign.artefacts import ARTEFACTS
from tests.campaign.disk import may_mount
from tests.campaign.inputs import GROWTH, judge
from tests.campaign.subjects import SUBJECTS
from tests.campaign.system import Ended
from tests.campaign.verdicts import Case, Verdict, counted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, 2026-11-23")

# Commands of a line each in place of the project's; run alone: it forks. What becomes of a campaign against the first.
PLANTED = """
import importlib, json, os, sys, time, types
from pathlib import Path
from random import Random
from tests.campaign import disk
from tests.campaign import kills
from tests.campaign import system
from tests.campaign.subjects import Subject, fresh_folder

def write(name, text):
    for number, line in enumerate(text):
        with open(name, "a" if number else "w") as file:
            file.write(line + "\\n")

def careless(words):
    write("out.txt", words[0] * 3)

def careful(words):
    write(".part", words[0] * 3)
    os.replace(".part", "out.txt")

def hanging(words):
    time.sleep(60)

for act in (careless, careful, hanging):
    module = types.ModuleType(f"scripts.{act.__name__}")
    module.app = lambda words, act=act: sys.exit(act(words))
    sys.modules[module.__name__] = module

root, found = Path(sys.argv[1]), {}
for name in ("careless", "careful"):
    subject = Subject(name, (name, "b"), "out.txt", ((name, "b"),), (name, "a"))
    undisturbed = kills.measure(subject, root)
    plan = [system.Kill(call=number) for number in range(undisturbed.calls)]
    outcomes = [kills.kill(subject, undisturbed, harm, root) for harm in plan]
    found[name] = [[verdict.outcome, verdict.reason] for verdict in outcomes]
system.LIMIT = 0.5
ended = system.run(("hanging",), fresh_folder(root, "hanging"))
found["hanging"] = [ended.hung, ended.code]
print(json.dumps(found))
"""


def test_what_careless_commands_lose_is_seen_before_every_call(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    lost = ["failed", "neither the old output nor the new one stood under the name"]
    old = ["old stood", ""]
    assert found["careless"] == [old, lost, lost]  # it opens the file three times, for a line each
    assert found["careful"] == [old] * 4  # and then renames it; a rerun writes over the other
    assert found["hanging"] == [True, None]


def ended(code: int, err: str = "Error: no such file\n", **others: object) -> Ended:
    values = {"code": code, "out": "", "err": err, "seconds": 1.0, "calls": 0, "hung": False, "megabytes": 0.0}
    return Ended(**{**values, **others})  # type: ignore[arg-type]


def test_a_refusal_is_one_error_line_with_its_exit_code_and_nothing_written() -> None:
    assert judge(ended(0), ["out"]).outcome == "taken"
    for code in (2, 3, 4):
        assert judge(ended(code, "a note\nError: no such file\n"), []).outcome == "refused"
    for wrong, written, reason in (
        (ended(1), [], "no clear refusal"),
        (ended(3, "Error: a\nError: b\n"), [], "no clear refusal"),
        (ended(3, "Traceback (most recent call last):\nError: a\n"), [], "no clear refusal"),
        (ended(3, ""), [], "no clear refusal"),
        (ended(3), ["out"], "refused, but wrote out"),
        (ended(0, megabytes=GROWTH + 1), [], "grew by"),
        (ended(3, hung=True), [], "hung"),
    ):
        verdict = judge(wrong, written)
        assert verdict.outcome == "failed"
        assert reason in verdict.reason


def test_cases_are_counted_by_part_and_outcome_and_failures_listed() -> None:
    cases = [
        Case("a", "x", Verdict("refused")),
        Case("a", "y", Verdict("failed", "why")),
        Case("b", "z", Verdict("ok")),
    ]
    assert counted(cases) == {
        "parts": {
            "a": {"tried": 2, "failed": 1, "outcomes": {"failed": 1, "refused": 1}},
            "b": {"tried": 1, "failed": 0, "outcomes": {"ok": 1}},
        },
        "failures": [{"part": "a", "what": "y", "reason": "why"}],
    }


def test_the_quick_campaign_loses_nothing(tmp_path: Path) -> None:
    record = tmp_path / "campaign.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaign", "--quick", "--seed", "1", "--json", str(record)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(record.read_text())
    assert found["failures"] == []
    parts = found["parts"]
    assert sum(part["tried"] for part in parts.values()) == sum(
        found["plan"][part] for part in ("kills", "inputs", "artefacts", *["disks"] * may_mount())
    )
    assert min(parts[f"kills of {subject.name}"]["tried"] for subject in SUBJECTS) == 2
    assert {f"damaged {artefact.name}" for artefact in ARTEFACTS} <= parts.keys()
    outcomes = {outcome for part in parts.values() for outcome in part["outcomes"]}
    assert outcomes >= {"old stood", "nothing stood", "refused"}
