"""K-PY-6: saved at any turn, the resumed trace equals the uninterrupted one."""

import unittest

from .fake_agent import Attempt, run_outside

SCRIPT = """
import random
random.seed(5)
import portal
job = portal.job()

class Net:
    def __init__(self):
        self.w = [0.0] * 5
        self.v = {"m": self.w}

weights = [1, 2, 3]
net = Net()
tied = net.w
big = bytearray(200000)
state = job.state(step=0, net=net, hist=[], weights=weights, big=big, rng=random.Random(3))
for step in job.steps(state, "step", 5):
    tied[step % 5] += random.random()
    weights.append(step)
    big[step * 40000] = step + 1
    state.hist.append((step, state.rng.random()))
    state.late = {"net": net, "at": step}
    print(step, net.v["m"], len(state.weights), sum(state.big), state.hist[-1], state.late["at"], flush=True)
print("end", tied is net.w is net.v["m"], weights is state.weights, state.late["net"] is net, state.step)
"""


class Turns(unittest.TestCase):
    def test_every_turn(self) -> None:
        whole = run_outside(SCRIPT)
        for turn in range(6):
            with self.subTest(turn=turn):
                with Attempt(SCRIPT) as first:
                    first.start(asked=True)
                    for _ in range(turn):
                        first.at_safe_point()
                        first.go(keep_asking=True)
                    self.assertEqual(first.at_safe_point()["turn"], turn + 1)
                    saved = first.save()
                    first.kill()
                    before = first.process.stdout.read().decode()
                with Attempt(SCRIPT, 2, saved) as second:
                    code, after, errors = second.start().finish()
                self.assertEqual((code, errors), (0, ""))
                self.assertEqual(before + after, whole)

    def test_saved_again_and_again(self) -> None:
        """Each attempt runs one turn of the same job, restored from the one before it."""
        whole = run_outside(SCRIPT)
        saved, trace = None, ""
        for number in range(1, 7):
            with Attempt(SCRIPT, number, saved) as attempt:
                attempt.start(asked=True)
                attempt.at_safe_point()
                attempt.go(keep_asking=True)
                if number == 6:
                    code, out, errors = attempt.finish()
                    self.assertEqual((code, errors), (0, ""))
                else:
                    attempt.at_safe_point()
                    saved = attempt.save()
                    attempt.kill()
                    out = attempt.process.stdout.read().decode()
                trace += out
        self.assertEqual(trace, whole)


if __name__ == "__main__":
    unittest.main()
