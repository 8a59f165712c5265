"""Commands that end with their parent, with the processes that they started themselves."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

OWN = "import signal; print('begun', flush=True); signal.pause()"
CHILD = f"""
import subprocess, sys
from cse.encoder.processes import end_with_parent

end_with_parent()
subprocess.run([sys.executable, "-c", {OWN!r}])
"""
PARENT = f"""
import os, signal, subprocess, sys
from cse.encoder.processes import BOUND

options = {{"stdin": subprocess.PIPE, "env": {{**os.environ, BOUND: "1"}}, "start_new_session": True}}
process = subprocess.Popen([sys.executable, "-c", {CHILD!r}], **options)
signal.pause()
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups, 2026-11-26")
def test_the_children_of_a_killed_process_and_theirs_end() -> None:
    """The output ends when the last of the three processes has ended."""
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        parent.kill()
        assert parent.stdout.read() == ""
