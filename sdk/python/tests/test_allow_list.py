"""K-STRICT-2: an allow-list. What is not a kind that is known proves itself by a rebuilding, never in the job."""

import unittest

from .fake_agent import Attempt

SCRIPT = """
import os, portal

class Whole:
    '''Its reduce tells everything.'''
    def __init__(self, x):
        self.x = x
    def __reduce__(self):
        return Whole, (self.x,)

class Lies:
    '''Its reduce forgets a field that could have been carried.'''
    def __init__(self):
        self.kept = 1
    def __reduce__(self):
        return Lies, ()

class Closes:
    '''A copy of it would do harm when it goes.'''
    def __init__(self, owner):
        self.owner = owner
    def __reduce__(self):
        return Closes, (self.owner,)
    def __del__(self):
        if self.owner == os.getpid():
            print('a copy was made here', flush=True)

job = portal.job()
state = job.state(step=0, held=[])
state.held += [Whole(3), Closes(os.getpid()), Lies()][:%d]
for each in state.held[2:]:
    each.kept = 2
for step in job.steps(state, 'step', 2):
    pass
print('end', flush=True)
os._exit(0)
"""


class AllowList(unittest.TestCase):
    def probed(self, count: int) -> dict:
        with Attempt(SCRIPT % count) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            answer = attempt.probe()
            attempt.go()
            code, out, errors = attempt.finish()
        self.assertEqual((code, out), (0, "end\n"), errors)
        return answer

    def test_what_proves_itself_is_carried(self) -> None:
        answer = self.probed(2)
        self.assertEqual(answer["t"], "probed", answer)

    def test_a_field_that_a_reduce_forgets_is_named(self) -> None:
        answer = self.probed(3)
        self.assertEqual(answer["t"], "refused")
        self.assertEqual([value["path"] for value in answer["values"]], ["state.held[2].kept"])


if __name__ == "__main__":
    unittest.main()
