"""The type stubs in python/haul are what the modules say, and type checkers can read them."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SOURCES = pathlib.Path(__file__).parent.parent / "haul"
# What differs between versions: nanobind's own layout, and how Python writes types.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nanobind") is None or sys.version_info[:2] != (3, 11),
    reason="stubs are compared where nanobind is installed, on Python 3.11",
)


@pytest.mark.parametrize("module", ["_haul", "_atomic"])
def test_stubs_are_what_the_module_says(module, tmp_path):
    made = tmp_path / f"{module}.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-P", "-m", f"haul.{module}", "-o"]
    subprocess.run([*command, str(made)], check=True)
    again = " ".join([*command, f"python/haul/{module}.pyi"])
    assert made.read_text() == (SOURCES / made.name).read_text(), f"make the stub again: {again}"


def test_what_a_type_checker_says():
    pytest.importorskip("mypy")
    program = """
import numpy as np, haul
ticket: haul.Ticket = haul.copy(bytearray(4), b"abcd", dst_affinity="neutral")
haul.copy(np.zeros(4), [np.zeros(2), np.zeros(2)]).wait(timeout=1.0)
size: int = haul.empty((2, 3), "f4").nbytes
async def wait() -> haul.Ticket:
    return await ticket
with haul.Lock("name") as token:
    word: int = token
haul.copy(haul.Memory(4), haul.process(1).extent(0, 4))
haul.copy(bytearray(4), b"abcd", dst_affinity="warm")
haul.copy(bytearray(4), 5)
"""
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-c", program], capture_output=True, text=True, check=False
    ).stdout
    assert said.count("error:") == 2 and "dst_affinity" in said and '"int"' in said, said
