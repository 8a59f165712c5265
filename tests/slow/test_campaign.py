"""The campaign loses nothing, and sees what is lost where a command is not careful."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, 2026-11-23")

# Commands of a line each in place of the project's; run alone: it forks. What becomes of a campaign against them.
PLANTED = """
import json, os, sys, types
from pathlib import Path
from random import Random
from tests.campaign.disturbances import Saved, damage, kill
from tests.campaign.outputs import Command

def write(name, text):
    for number, line in enumerate(text):
        with open(name, "a" if number else "w") as file:
            file.write(line + "\\n")

def careless(words):
    write("out.txt", words[0] * 3)

def careful(words):
    write(".part", words[0] * 3)
    os.replace(".part", "out.txt")

def reading(words):
    print(Path("saved/text").read_bytes())

for act in (careless, careful, reading):
    module = types.ModuleType(f"scripts.{act.__name__}")
    module.app = lambda words, act=act: sys.exit(act(words))
    sys.modules[module.__name__] = module

root, seen = Path(sys.argv[1]), {}
for name in ("careless", "careful"):
    one = Command((name, "b"), "out.txt", ((name, "b"),), (name, "a"))
    seen[name], _ = kill(one, root, 9, Random(0))
(root / "text").mkdir()
(root / "text" / "text").write_text("a")
seen["reading"] = damage(Saved("text", "saved", ("reading", "x"), origin="text"), root, 0, 1, Random(0))
print(json.dumps(seen))
"""


def test_what_careless_commands_lose_is_seen(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANTED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    lost = "failed, neither the old output nor the new one stood"
    assert sorted(seen["careless"])[:2] == [f"{lost}, before call 1", f"{lost}, before call 2"]  # a call for a line
    assert {outcome.split(",")[0] for outcome in seen["careful"]} == {"the rerun's result is the undisturbed one"}
    assert seen["reading"][0].startswith("failed, accepted with another result: text")


def test_the_campaign_loses_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaign", "--seed", "1"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)) == 16  # commands and kinds of output
