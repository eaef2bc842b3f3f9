"""K-STRICT-5: every kind of value, at several depths, is carried and equal, or named by its path; the job runs on."""

import sys
import unittest

from . import corpus
from .fake_agent import Attempt

CARRY = """
import sys
import portal
from tests import corpus, same
from tests.fake_agent import SDK
job = portal.job()
state = job.state(step=0)
if job.attempt == 1:
    for name, make in corpus.CARRIED.items():
        for index, (wrap, _) in corpus.nests_of(name):
            setattr(state, f"{name}_{index}", wrap(make()))
for step in job.steps(state, "step", 1):
    from tests import kinds
    print("ended", kinds.Closes.ended, flush=True)
    for name, make in corpus.CARRIED.items():
        for index, (wrap, unwrap) in corpus.nests_of(name):
            held = getattr(state, f"{name}_{index}")
            found = same.difference(unwrap(wrap(make())), unwrap(held))
            if found:
                print(name, index, found[:200])
            if name == "sentinel":
                assert all(a is b for a, b in zip(unwrap(held), make()))
"""

REFUSE = """
import portal
from tests import corpus
job = portal.job()
made = {}
state = job.state(step=0, good=[1, 2])
for name, (make, _) in corpus.REFUSED.items():
    for index, (wrap, _) in enumerate(corpus.NESTS.values()):
        made[name] = make()
        setattr(state, f"{name}_{index}", wrap(made[name]))
for step in job.steps(state, "step", 3):
    # The job runs on unharmed: what it holds still works.
    a, b = made["socket_pair"]
    a.sendall(b"ping")
    assert b.recv(4) == b"ping"
    assert made["sqlite"].execute("select 1").fetchone() == (1,)
    assert made["file_binary"].read(0) == b""
    assert not made["mmap"].closed and made["lock"].acquire(False)
    made["lock"].release()
    print("ran", step, flush=True)
"""


class Corpus(unittest.TestCase):
    maxDiff = None

    def test_kinds_enough(self) -> None:
        self.assertGreaterEqual(len(corpus.CARRIED) + len(corpus.REFUSED), 120)

    def test_carried(self) -> None:
        with Attempt(CARRY) as first:
            first.start(asked=True)
            first.at_safe_point()
            saved = first.save()
            if isinstance(saved, dict):
                self.fail("\n".join(str(value) for value in saved["values"][:20]))
            first.go()
            code, out, errors = first.finish()
        self.assertEqual((code, out), (0, "ended []\n"), errors)
        with Attempt(CARRY, 2, saved) as second:
            answer = second.greet()
            self.assertEqual(answer["t"], "restored", str(answer)[:3000])
            self.assertEqual(answer["digest"], saved.digest)
            second.peer.send({"t": "run"})
            code, out, errors = second.finish()
        self.assertEqual((code, out), (0, "ended []\n"), errors[-2000:])

    def test_refused(self) -> None:
        with Attempt(REFUSE) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            probed = attempt.probe()
            self.assertEqual(probed["t"], "refused", probed)
            again = attempt.save()
            self.assertEqual(again["values"], probed["values"])
            attempt.go()
            code, out, errors = attempt.finish()
        self.assertEqual((code, out), (0, "ran 0\nran 1\nran 2\n"), errors)
        named = {value["path"]: value for value in probed["values"]}
        expected = set()
        for name, (_, steps) in corpus.REFUSED.items():
            for index, nest in enumerate(corpus.NESTS):
                for step in steps:
                    expected.add(f"state.{name}_{index}{nest}{step}")
        self.assertEqual((sorted(expected - set(named)), sorted(set(named) - expected)), ([], []))
        for value in probed["values"]:
            for part in ("type", "reason", "advice"):
                self.assertTrue(value[part], value)


if __name__ == "__main__":
    sys.exit(unittest.main())
