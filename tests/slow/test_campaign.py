"""The campaign loses nothing."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, 2026-11-23")


def test_the_campaign_loses_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaign", "--seed", "1"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)) == 13  # commands and kinds of output
