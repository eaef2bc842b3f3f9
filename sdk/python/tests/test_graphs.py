"""K-PY-1, K-WHOLE-3: random graphs of every carried container, with shared parts and cycles, come back equal."""

import collections
import os
import random
import unittest
from typing import Any, List

from . import kinds as k
from . import same
from .direct import round_trip, walk

SEEDS = 150


def graph(seed: int, size: int = 60) -> Any:
    """A graph of about `size` objects; every object may hold any other, so there are cycles of all kinds."""
    draw = random.Random(seed)
    leaves = [None, True, 0, -5, 2**70, 1.5, float("nan"), "", "text", "\u2603", b"bytes", k.Color.RED, k.function, ..., 3 + 4j]
    makers = [list, dict, set, k.Plain, k.MyList, k.MyDict, k.MySet, collections.deque, collections.OrderedDict,
              lambda: k.Slotted(None), lambda: k.WithState(None), lambda: ValueError("x"), lambda: k.SlottedWithDict(1),
              lambda: collections.defaultdict(list), k.Guarded, lambda: bytearray(b"b")]  # fmt: skip
    made: List[Any] = []

    def part() -> Any:
        return draw.choice(made) if made and draw.random() < 0.5 else draw.choice(leaves)

    for _ in range(size):
        if draw.random() < 0.25:
            made.append(tuple(part() for _ in range(draw.randrange(4))))
        else:
            made.append(draw.choice(makers)())
    for each in made:
        for _ in range(draw.randrange(4)):
            if isinstance(each, (list, collections.deque)):
                each.append(part())
            elif isinstance(each, dict):
                each[draw.randrange(100)] = part()
            elif isinstance(each, set):
                each.add(draw.choice([1, "a", 2.5, (1, "b"), None]))
            elif isinstance(each, (k.Plain, ValueError, k.SlottedWithDict, k.MyList, k.MyDict)):
                each.__dict__[f"f{draw.randrange(5)}"] = part()
            elif isinstance(each, k.WithState):
                each.a = draw.choice(leaves[:9])
                each.twice = [each.a, each.a]
            if isinstance(each, k.Slotted):
                each.a = part()
            if isinstance(each, k.Guarded):
                each.content[f"g{draw.randrange(3)}"] = part()
    return draw.sample(made, min(len(made), 12))


class Graphs(unittest.TestCase):
    def test_random_graphs(self) -> None:
        first = int(os.environ.get("PORTAL_SEED", "0"))
        for seed in range(first, first + SEEDS):
            with self.subTest(seed=seed):
                value = graph(seed)
                made, there, here = round_trip({"value": value})
                self.assertEqual(same.difference(value, made["value"]), "")
                self.assertEqual(there.digest(), here.digest())
                self.assertEqual(walk({"value": value}).digest(), there.digest())

    def test_any_change_changes_the_digest(self) -> None:
        changes = [
            ([1, 2], [2, 1]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (0.0, -0.0), (1, 1.0), (1, True), ("a", b"a"),
            ([[]], [()]), (k.Plain(a=1), k.Data(1)), (b"x" * 100_000, b"x" * 99_999 + b"y"), (bytearray(3), bytes(3)),
            ("\ud800", "?"), ({1}, frozenset({1})), (k.Color.RED, 1), ([1, 2], k.MyList([1, 2])), (float("nan"), float("inf")),
        ]  # fmt: skip
        for first, second in changes:
            with self.subTest(first=repr(first)[:40]):
                self.assertNotEqual(walk({"v": first}).digest(), walk({"v": second}).digest())
        shared = [1]
        self.assertNotEqual(walk({"v": [shared, shared]}).digest(), walk({"v": [[1], [1]]}).digest())

    def test_identity_of_text_and_numbers_does_not_show(self) -> None:
        text, number = "".join(["te", "xt"]), int("123456789")
        one = {"v": [text, text, number, number, k.Plain(text=text)]}
        other = {"v": ["".join(["t", "ext"]), "".join(["tex", "t"]), int("123456789"), 123456789, k.Plain(text="text")]}
        self.assertEqual(walk(one).digest(), walk(other).digest())


if __name__ == "__main__":
    unittest.main()
