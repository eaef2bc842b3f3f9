"""K-PY-1: one graph, restored into the objects that the script holds."""

import unittest

from .fake_agent import Attempt, Checkpoint

HEAD = """
import array, collections, io, portal, random
from tests import kinds as k
job = portal.job()
"""


def carry(script: str, second: str = "") -> "tuple[str, str]":
    """What the script prints after it was saved at the end of its first step, and what its next attempt prints."""
    with Attempt(HEAD + script) as first:
        first.start(asked=True)
        first.at_safe_point()
        first.go(keep_asking=True)
        first.at_safe_point()
        saved = first.save()
        assert isinstance(saved, Checkpoint), saved
        first.go()
        code, there, errors = first.finish()
        assert code == 0, errors
    with Attempt(HEAD + (second or script), 2, saved) as again:
        code, here, errors = again.start().finish()
        assert code == 0, errors
    return there, here


class InPlace(unittest.TestCase):
    maxDiff = None

    def test_top_level_values(self) -> None:
        script = """
values = dict(
    a=[1], b={"x": 1}, c={1}, d=bytearray(b"abc"), e=array.array("d", [1.0]), f=k.Plain(x=1), g=collections.deque([1]),
    h=collections.OrderedDict(a=1), i=collections.defaultdict(list), j=collections.Counter("aab"), l=random.Random(1),
    m=k.Slotted(1), n=k.MyList([1]), o=k.WithState(1), p=k.Guarded(), q=bytearray(100_000), r=array.array("i", [1] * 50_000),
    w=io.StringIO("abc"), x=io.BytesIO(b"abc"), s=k.MyDict(a=1), t=k.CodeError(3), u=k.SlottedChild(1, 2), v=k.MySet([1]),
)
state = job.state(step=0, **values)
for step in job.steps(state, "step", 2):
    if step == 0:
        for name, value in values.items():
            assert getattr(state, name) is value, name
        a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, w, x, s, t, u, v = values.values()
        a.append(a); b["y"] = [b]; c.add("s"); d += b"d" * 10; e.append(2.5); f.y = f; del f.x; g.append(g)
        h["z"] = h; i["k"].append(1); j["c"] += 5; l.random(); m.a = [m]; n.append(n); n.tag = 1; o.a = 9; o.twice = [9, 9]
        p.content["x"] = 2; q.extend(b"more"); r.extend([7] * 100); s["b"] = s; t.code = 4; t.args = (1, 2); u.b = u; v.add(2)
        w.seek(3); w.write("def"); x.write(b"X")
    if step == 1:
        for name, value in values.items():
            assert getattr(state, name) is value, name
        a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, w, x, s, t, u, v = values.values()
        print(a[0], a[1] is a, b["y"][0] is b, sorted(map(str, c)), d, e, f.__dict__.keys(), f.y is f, g[1] is g, h["z"] is h,
              i, j, l.random(), m.a[0] is m, m._Slotted__hidden, n[1] is n, n.tag, o.a, o.twice, p.x, len(q), q[-4:], len(r), r[-1],
              s["b"] is s, t.code, t.args, u.b is u, v, w.getvalue(), w.tell(), x.getvalue(), x.tell())
"""
        there, here = carry(script)
        self.assertEqual(there, here)
        self.assertIn("True", here)

    def test_names_deeper_in_the_state(self) -> None:
        script = """
weights = [0.0, 0.0]
encoder = k.Plain(weights=weights, name="e")
inner = {"encoder": encoder, "pair": (weights, [1])}
listed = inner["pair"][1]
state = job.state(step=0, model=k.Plain(inner=inner))
for step in job.steps(state, "step", 2):
    if step == 0:
        weights[0] = 5.0
        encoder.name = "changed"
        listed.append(2)
    if step == 1:
        print(weights, encoder.name, listed, state.model.inner is inner, inner["encoder"] is encoder, encoder.weights is weights,
              inner["pair"][0] is weights, inner["pair"][1] is listed)
"""
        there, here = carry(script)
        self.assertEqual(there, "[5.0, 0.0] changed [1, 2] True True True True True\n")
        self.assertEqual(here, there)

    def test_names_held_by_what_never_changes(self) -> None:
        script = """
pair = k.Pair([1], {"x": 1})
plain = ([1], k.MyTuple([[2]]))
bound = k.Concrete().act
state = job.state(step=0, pair=pair, box=k.Plain(plain=plain, bound=bound))
for step in job.steps(state, "step", 2):
    if step == 0:
        pair.left.append(2); pair.right["y"] = 2; plain[0].append(2); plain[1][0].append(3); bound.__self__.a = 5
    if step == 1:
        print(pair, plain, bound(), state.box.bound(), state.pair.left is pair.left, state.box.plain[1][0] is plain[1][0])
"""
        there, here = carry(script)
        self.assertIn("[1, 2]", there)
        self.assertEqual(here, there)

    def test_what_was_replaced_is_not_filled(self) -> None:
        script = """
DEFAULT = {"lr": 1}
first = [1]
state = job.state(step=0, model=k.Plain(options=DEFAULT), values=first)
for step in job.steps(state, "step", 2):
    if step == 0:
        state.model.options = {"lr": 2}
        state.values = [2]
    if step == 1:
        print(DEFAULT, first, state.model.options, state.values)
"""
        there, here = carry(script)
        self.assertEqual(there, "{'lr': 1} [1] {'lr': 2} [2]\n")
        self.assertEqual(here, there)

    def test_moved_within_the_state(self) -> None:
        script = """
held = [1]
state = job.state(step=0, box=k.Plain(x=held))
for step in job.steps(state, "step", 2):
    if step == 0:
        state.box = {"now": held}
        held.append(2)
    if step == 1:
        print(held, state.box["now"] is held)
"""
        there, here = carry(script)
        self.assertEqual(there, "[1, 2] True\n")
        self.assertEqual(here, there)

    def test_carried_by_state_dict(self) -> None:
        script = """
carrier = k.Carrier()
nested = k.Carrier()
weights = carrier.weights
state = job.state(step=0, model=carrier, trainer=k.Plain(part=nested))
for step in job.steps(state, "step", 2):
    if step == 0:
        carrier.weights[0] = 7.0
        nested.weights[0] = 8.0
    if step == 1:
        print(weights, carrier.weights is weights, state.model is carrier, nested.weights, state.trainer.part is nested)
"""
        there, here = carry(script)
        self.assertEqual(there, "[7.0] True True [8.0] True\n")
        self.assertEqual(here, there)

    def test_state_within_itself(self) -> None:
        script = """
trainer = k.Plain()
state = job.state(step=0, trainer=trainer)
trainer.state = state
for step in job.steps(state, "step", 2):
    if step == 1:
        print(trainer.state is state, state.trainer is trainer, trainer.state.step)
"""
        there, here = carry(script)
        self.assertEqual(there, "True True 1\n")
        self.assertEqual(here, there)

    def test_names_of_later_lines(self) -> None:
        """What the script names only below job.state() is not there yet when it resumes."""
        script = """
EARLY = k.Plain()
state = job.state(step=0)
class Late:
    pass
def late():
    pass
marker = k.Plain()
state.marker, state.early, state.late, state.function = marker, EARLY, {late}, [late]
for step in job.steps(state, "step", 2):
    if step == 0:
        state.late, state.function, state.instance = None, None, None
    if step == 1:
        print(type(state.marker).__name__, state.early is EARLY)
"""
        with Attempt(HEAD + script.replace("{late}", "Late()")) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            refused = attempt.probe()
            attempt.go()
        self.assertEqual([value["path"] for value in refused["values"]], ["state.late", "state.function[0]"])
        there, here = carry(script.replace("{late}", "Late()"))
        self.assertEqual(there, "Plain True\n")
        self.assertEqual(here, there)

    def test_values_set_and_deleted_later(self) -> None:
        script = """
state = job.state(step=0, gone=1)
for step in job.steps(state, "step", 2):
    if step == 0:
        del state.gone
        state.late = [1]
        state.large = b"x" * 200_000 + b"y" * 200_000
    if step == 1:
        print(hasattr(state, "gone"), state.late, len(state.large), state)
"""
        there, here = carry(script)
        self.assertEqual(there, "False [1] 400000 <portal state: step, late, large>\n")
        self.assertEqual(here, there)

    def refuse(self, first: str, second: str) -> "list[dict]":
        with Attempt(HEAD + first) as one:
            one.start(asked=True)
            one.at_safe_point()
            saved = one.save()
        with Attempt(HEAD + second, 2, saved) as two:
            answer = two.greet()
            self.assertEqual(answer["t"], "restore-refused", answer)
            two.peer.send({"t": "exit", "why": "told to"})
            code, out, errors = two.finish()
        self.assertEqual((code, out), (75, ""))
        self.assertIn("told to", errors)
        return answer["values"]

    def test_what_cannot_be_filled_is_named(self) -> None:
        script = "state = job.state(step=0, {})\nfor step in job.steps(state, 'step', 2):\n    print(step)\n"
        pairs = [
            ("model=[1]", "model={1: 2}"),
            ("model=k.Plain()", "model=k.Data(1)"),
            ("model=collections.deque(maxlen=3)", "model=collections.deque(maxlen=4)"),
            ("model=[1]", "other=[1]"),
            ("model=bytearray(100_000)", "model=[1]"),
        ]
        for first, second in pairs:
            with self.subTest(first=first, second=second):
                values = self.refuse(script.format(first), script.format(second))
                self.assertEqual([value["path"] for value in values], ["state.model"])

    def test_a_class_that_is_gone(self) -> None:
        script = "{}state = job.state(step=0)\nstate.x = {}\nfor step in job.steps(state, 'step', 2):\n    print(step)\n"
        first = script.format("class Gone:\n    pass\n", "Gone()")
        with Attempt(HEAD + first) as one:
            one.start(asked=True)
            one.at_safe_point()
            saved = one.save()
        with Attempt(HEAD + script.format("", "1"), 2, saved) as two:
            answer = two.greet()
        self.assertEqual(answer["t"], "restore-refused")
        self.assertIn("Gone", answer["why"])


if __name__ == "__main__":
    unittest.main()
