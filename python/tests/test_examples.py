"""The examples run, and check their bytes. (What they measure is nobody's test.)"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU only: the examples compare with a mover")
@pytest.mark.parametrize("name", ["checkpoint", "responses", "block_store"])
def test_example(name, tmp_path):
    figures = tmp_path / "figures.json"
    finished = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--rounds", "1", "--json", str(figures)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[-1].endswith("is right")
    assert json.loads(figures.read_text())


def test_wrong_arguments():
    finished = subprocess.run(
        [sys.executable, str(EXAMPLES / "checkpoint.py"), "--rounds", "many"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 2 and "usage" in finished.stderr
