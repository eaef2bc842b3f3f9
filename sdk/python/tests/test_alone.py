"""K-PY-2: no dependency but the standard library, from Python 3.9 on, with types."""

import ast
import os
import subprocess
import sys
import unittest

from .fake_agent import SDK

PACKAGE = os.path.join(SDK, "portal")
SOURCES = sorted(name for name in os.listdir(PACKAGE) if name.endswith(".py"))


class Alone(unittest.TestCase):
    def test_it_runs_where_nothing_else_is_installed(self) -> None:
        script = """
import sys
sys.path.insert(0, sys.argv[1])
import portal
job = portal.job()
state = job.state(step=0, seen=[])
for step in job.steps(state, 'step', 3):
    state.seen.append(step)
print(state.seen, [name for name in ('numpy', 'torch', 'cloudpickle') if name in sys.modules])
"""
        # -I and -S: neither the environment nor installed packages are seen
        done = subprocess.run([sys.executable, "-I", "-S", "-c", script, SDK], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("[0, 1, 2] []\n", 0), done.stderr)

    def test_every_file_is_python_3_9(self) -> None:
        for name in SOURCES:
            with open(os.path.join(PACKAGE, name)) as file:
                ast.parse(file.read(), name, feature_version=(3, 9))

    def test_it_says_that_it_has_types(self) -> None:
        self.assertTrue(os.path.exists(os.path.join(PACKAGE, "py.typed")))


if __name__ == "__main__":
    unittest.main()
