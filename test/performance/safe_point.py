"""What a safe point costs when nothing is asked (K-PY-3: under 0.2 µs in Python).

    python3 test/performance/safe_point.py [--json]

Medians of nine interleaved runs, in nanoseconds a turn: an empty loop over range(), the same over job.steps() with a mapped
flag as within Portal, and outside Portal. Seen on 2 busy cores: CPython 3.11 11, 94 and 90 ns, 3.13 16, 114 and 137, 3.9 14, 165 and 164.
"""

import json
import os
import statistics
import sys
import tempfile
import timeit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "sdk", "python"))

from portal._flag import Flag  # noqa: E402
from portal._job import Job  # noqa: E402
from portal._state import State  # noqa: E402

TURNS = 200_000
RUNS = 9
GOAL_NS = 200


def bare() -> None:
    for _ in range(TURNS):
        pass


def main() -> None:
    job = Job()
    inside = Job()
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(64))
        file.flush()
        inside._flag = Flag(file.name)

        def steps(which: Job) -> None:
            for _ in which.steps(State(step=0), "step", TURNS):
                pass

        loops = {"range": bare, "inside": lambda: steps(inside), "outside": lambda: steps(job)}
        seen = {name: [] for name in loops}
        for _ in range(RUNS):
            for name, loop in loops.items():
                seen[name].append(timeit.timeit(loop, number=1) / TURNS * 1e9)
    medians = {name: round(statistics.median(times), 1) for name, times in seen.items()}
    medians["safe_point"] = round(medians["inside"] - medians["range"], 1)
    rows = [
        {
            "what": "safe point, Python: a turn of job.steps() over one of range()",
            "seen": f"{medians['safe_point']:.0f} ns",
            "goal": f"≤ {GOAL_NS} ns",
            "ok": medians["safe_point"] <= GOAL_NS,
            "limits": "the interpreter: one generator resumed, one attribute set, one byte looked at",
        },
        {
            "what": "safe point, Python: a turn of job.steps() outside Portal",
            "seen": f"{medians['outside']:.0f} ns",
            "goal": None,
            "ok": None,
        },
    ]
    if "--json" in sys.argv:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['what']:64} {row['seen']:>8}  {row['goal'] or ''}")
    if not rows[0]["ok"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
