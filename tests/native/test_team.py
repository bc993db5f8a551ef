"""If a thread of a team fails, the others stop without waiting for it, and its exception is raised."""

import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"

# One of three threads throws before each meeting in turn, in some trials also inside a task.
LEAVING = """
#include <new>

#include "parallel/team.hpp"

int main() {
  int caught = 0;
  for (int trial = 0; trial < 105; ++trial) {
    manyclass::Team team(3);
    try {
      team.run([&](int me) {
        for (int step = 0; step < 5; ++step) {
          if (me == trial % 3 && step == trial % 5) throw std::bad_alloc();
          team.meet();
          team.share_out(4, me, [&](int64_t t) {
            if (trial % 7 == 0 && t == 2) throw std::bad_alloc();
          });
          team.meet();
        }
      });
    } catch (const std::bad_alloc&) {
      ++caught;
    }
  }
  return caught == 105 ? 0 : 1;
}
"""

# A task of the first step throws: no task of a later step may read its half-written results.
LATER_STEPS = """
#include <atomic>
#include <new>

#include "parallel/team.hpp"

int main() {
  std::atomic<int> caught{0}, later{0};
  for (int trial = 0; trial < 120; ++trial) {
    manyclass::Team team(1 + trial % 3);
    try {
      team.run([&](int me) {
        for (int step = 0; step < 4; ++step) {
          team.share_out(6, me, [&](int64_t t) {
            if (step == 0 && t == trial % 6) throw std::bad_alloc();
            if (step > 0) ++later;
          });
          team.meet();
        }
      });
    } catch (const std::bad_alloc&) {
      ++caught;
    }
  }
  return caught == 120 && later == 0 ? 0 : 1;
}
"""


@pytest.mark.parametrize("program", [LEAVING, LATER_STEPS], ids=["leaving", "later steps"])
def test_nobody_waits_for_a_thread_that_has_failed_or_goes_on_without_it(tmp_path, program):
    (tmp_path / "team.cpp").write_text(program)
    compiler = ["g++", "-std=c++20", "-O1", "-fopenmp", "-pthread", "-I", NATIVE]
    subprocess.run([*compiler, "-o", tmp_path / "team", tmp_path / "team.cpp"], check=True)
    subprocess.run([tmp_path / "team"], check=True, timeout=120)
