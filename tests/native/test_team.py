"""If one thread of a team fails, the others stop without waiting for it, and its exception is raised."""

import subprocess
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"

# One of three threads throws before each meeting in turn, in some trials also inside a task.
PROGRAM = """
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


def test_nobody_waits_for_a_thread_that_has_failed(tmp_path):
    (tmp_path / "team.cpp").write_text(PROGRAM)
    compiler = ["g++", "-std=c++20", "-O1", "-fopenmp", "-pthread", "-I", NATIVE]
    subprocess.run([*compiler, "-o", tmp_path / "team", tmp_path / "team.cpp"], check=True)
    subprocess.run([tmp_path / "team"], check=True, timeout=120)
