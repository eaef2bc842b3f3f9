"""Arrays: shared memory stays shared, live arrays are filled in place; none of it where numpy is not installed."""

import sys
import unittest

from .fake_agent import Attempt

try:
    import numpy
except ImportError:
    numpy = None

SCRIPT = """
import numpy as np
import portal
job = portal.job()

class Model:
    def __init__(self):
        self.flat = np.zeros(30_000)
        self.w = self.flat[:20_000].reshape(100, 200)
        self.b = self.flat[20_000:]
        self.small = np.zeros(10, "f4")

model = Model()
alias = model.w
flat = model.flat
top = np.zeros((3, 4), order="F")
rng = np.random.default_rng(1)
np.random.seed(3)
state = job.state(step=0, model=model, top=top, rng=rng)

def others():
    base = np.arange(1000, dtype=">i4")
    buffer = bytearray(range(256)) * 300
    text = np.array(["a", "snow"], dtype="U4")
    record = np.zeros(3, dtype=[("x", "f8"), ("y", "i2", (2,))])
    record["y"] = 7
    return {
        "base": base, "reversed": base[::-1], "every": base[10:500:3], "none": np.zeros((0, 3)), "zero": np.array(5.5),
        "buffer": buffer, "view": np.frombuffer(buffer, "u1", 1000, 17), "text": text, "record": record,
        "when": np.array(["2024-01-01", "NaT"], dtype="M8[ns]"), "objects": np.array([[1, [2]], [None, "x"]], dtype=object),
        "only_view": np.arange(20_000.0)[5:-5:2], "bool": np.array([True, False]), "complex": np.ones(3, "c16") * 1j,
        "scalar": [np.float32(1.5), np.int64(-3), np.datetime64("2024-01-01")], "dtype": [np.dtype("f4"), np.float64],
        "zeros": np.zeros(500_000), "random": np.random.default_rng(7), "old": np.random.RandomState(5),
        "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)), "fixed": (lambda a: (a.setflags(write=False), a)[1])(np.ones(3)),
    }

def tell(step):
    o = state.others
    print(step, float(model.flat.sum()), float(alias.sum()), float(flat[-1]), float(top.sum()), rng.integers(1000),
          float(np.random.rand()), np.shares_memory(model.w, model.flat), np.shares_memory(o["base"], o["every"]),
          np.shares_memory(o["view"], np.frombuffer(o["buffer"], "u1")), o["only_view"].strides, o["base"].dtype.str,
          o["record"]["y"].tolist(), o["when"].tolist(), o["objects"].tolist(), o["zero"], o["random"].random(), o["old"].rand(),
          o["none"].shape, o["broadcast"].strides, o["fixed"].flags.writeable, top.flags.f_contiguous, o["text"].tolist(),
          o["scalar"], o["dtype"], int(o["reversed"][0]), state.model.w is alias, state.top is top, state.rng is rng, flush=True)

for step in job.steps(state, "step", 4):
    if step == 0:
        state.others = others()
    model.w += step
    model.b[-1] = step * 10
    top[step % 3] += 1
    state.others["base"] += 1
    state.others["view"].flags.writeable and state.others["view"].__setitem__(0, step)
    tell(step)
"""

REFUSED = """
import numpy as np
import portal
job = portal.job()

class Tagged(np.ndarray):
    pass

state = job.state(step=0)
tagged = np.zeros(3).view(Tagged)
tagged.tag = [1]
state.tagged = {"x": tagged}
state.mapped = np.memmap("map", mode="w+", shape=(10,))
state.view_of_map = np.asarray(state.mapped)
state.fields = np.zeros(2, dtype=[("o", object)])
state.told = np.zeros(2, dtype=np.dtype("f4", metadata={"a": 1}))
state.inside = np.array([[1, lambda: 1]], dtype=object)
for step in job.steps(state, "step", 2):
    print(step, flush=True)
"""

UNFIT = """
import numpy as np, portal
job = portal.job()
state = job.state(step=0, w=np.zeros({size}), other=1)
for step in job.steps(state, "step", 2):
    pass
"""


class Arrays(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        if numpy is None:
            reason = "numpy is not installed here (python3 -m pip install numpy), so carrying its arrays is not tested"
            print(f"skipped: {reason}", file=sys.stderr)
            raise unittest.SkipTest(reason)

    def run_through(self, turn: int) -> str:
        with Attempt(SCRIPT) as first:
            first.start(asked=True)
            for _ in range(turn):
                first.at_safe_point()
                first.go(keep_asking=True)
            first.at_safe_point()
            saved = first.save()
            self.assertNotIsInstance(saved, dict, saved)
            self.assertTrue(saved.bytes < 6_000_000, saved.bytes)
            first.kill()
            before = first.process.stdout.read().decode()
        with Attempt(SCRIPT, 2, saved) as second:
            code, after, errors = second.start().finish()
        self.assertEqual((code, errors), (0, ""))
        return before + after

    def test_every_turn(self) -> None:
        with Attempt(SCRIPT) as whole:
            code, out, errors = whole.start().finish()
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(out.count("\n"), 4)
        self.assertIn("True True True", out)
        for turn in (0, 1, 3, 4):
            with self.subTest(turn=turn):
                self.assertEqual(self.run_through(turn), out)

    def test_refused(self) -> None:
        with Attempt(REFUSED) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            refused = attempt.probe()
            attempt.go()
            self.assertEqual(attempt.finish()[0], 0)
        self.assertEqual(
            sorted(value["path"] for value in refused["values"]),
            ["state.fields", "state.inside[1]", "state.mapped", "state.tagged['x'].tag", "state.told", "state.view_of_map"],
        )

    def test_unfit_live_array(self) -> None:
        """K-PY-1: what cannot be filled in place refuses the restore by its name."""
        with Attempt(UNFIT.format(size=50_000)) as first:
            first.start(asked=True)
            first.at_safe_point()
            saved = first.save()
        with Attempt(UNFIT.format(size=40_000), 2, saved) as second:
            answer = second.greet()
        self.assertEqual(answer["t"], "restore-refused")
        self.assertEqual([value["path"] for value in answer["values"]], ["state.w"])
