"""The talk with the agent: what is asked, what breaks on the way, and that the job is none the worse for it."""

import os
import signal
import sys
import time
import unittest

from .fake_agent import Attempt, Lost, run_outside, wait_for

LOOP = """
import portal, sys, time
from tests import kinds as k
job = portal.job()
big = bytearray(3_000_000)
big[::4096] = bytes([1]) * len(big[::4096])
state = job.state(step=0, big=big, trace=[])
for step in job.steps(state, "step", {total}):
    state.trace.append(step)
    {body}
    print(step, flush=True)
print("end", len(state.trace), state.trace == list(range({total})))
"""


def loop(total: int = 4, body: str = "pass") -> str:
    return LOOP.format(total=total, body=body)


class Session(unittest.TestCase):
    maxDiff = None

    def ends_well(self, attempt: Attempt, out: str) -> str:
        code, said, errors = attempt.finish()
        self.assertEqual((code, said), (0, out), errors)
        return errors

    def test_outside(self) -> None:
        script = """
import portal
job = portal.job()
assert portal.job() is job and job.attempt == 1 and not job.restored
ran = []
@job.on_start
def begin():
    ran.append("start")
job.on_suspend(lambda: ran.append("suspend"))
state = job.state(step=0, x=[1])
job.on_start(lambda: ran.append("late"))
for step in job.steps(state, "step", 3):
    job.progress(step, 3)
    job.checkpoint()
    state.x.append(step)
job.safe_point()
job.checkpoint()
state.y = 3
try:
    state.z
except AttributeError as error:
    print(error)
try:
    job.state(step=1)
except RuntimeError as error:
    print(error)
print(state.step, state.x, ran, 0 <= job.clock() < 60)
"""
        self.assertEqual(
            run_outside(script),
            "the state has no value 'z'; it has step, x, y\n"
            "job.state() was called already; set further values on the state that it returned\n"
            "3 [1, 0, 1, 2] ['start', 'late'] True\n",
        )

    def test_hello_and_counters(self) -> None:
        script = loop(3, "job.progress(step + 1, 3)")
        with Attempt(script, 7) as attempt:
            attempt.greet()
            hello = attempt.hello
            self.assertEqual((hello["sdk"], hello["pid"]), ("python", attempt.process.pid))
            environment = hello["environment"]
            self.assertEqual((environment["language"], environment["hashSeed"]), ("python", "7"))
            for name in ("version", "implementation", "machine", "threads", "cpus", "byteorder", "packages", "locale",
                         "timezone", "umask", "cwd"):  # fmt: skip
                self.assertIn(name, environment)
            # K-PY-5: it blocks until the attempt may run.
            time.sleep(0.2)
            self.assertIsNone(attempt.process.poll())
            self.assertEqual(attempt.counters()[0], 0)
            attempt.peer.send({"t": "run"})
            self.ends_well(attempt, "0\n1\n2\nend 3 True\n")
            self.assertEqual(attempt.counters(), (4, 3.0, 3.0))

    def test_on_start_runs_after_run_only(self) -> None:
        script = """
import portal
job = portal.job()
print("above", flush=True)
@job.on_start
def begin():
    print("started", job.attempt, job.restored, flush=True)
state = job.state(step=0)
"""
        with Attempt(script, 3) as attempt:
            attempt.greet()
            attempt.peer.send({"t": "exit", "why": "not this one"})
            code, out, errors = attempt.finish()
        self.assertEqual((code, out), (75, "above\n"))
        self.assertIn("not this one", errors)
        with Attempt(script, 3) as attempt:
            self.ends_well(attempt.start(), "above\nstarted 3 False\n")

    def test_probe_changes_nothing(self) -> None:
        with Attempt(loop()) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            answer = attempt.probe(5)
            self.assertEqual((answer["t"], answer["id"]), ("probed", 5))
            self.assertGreater(answer["bytes"], 3_000_000)
            self.assertGreater(answer["objects"], 0)
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\n3\nend 4 True\n")

    def test_saved_twice_is_the_same(self) -> None:
        """K-WHOLE-3: the digest is of the values."""
        with Attempt(loop()) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            first, second = attempt.save(1), attempt.save(2)
            attempt.go(keep_asking=True)
            attempt.at_safe_point()
            third = attempt.save(3)
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\n3\nend 4 True\n")
        self.assertEqual(first.digest, second.digest)
        self.assertNotEqual(first.digest, third.digest)
        self.assertEqual(first.streams, second.streams)
        paths = [value["path"] for value in first.head["values"]]
        self.assertEqual(paths, ["state.step", "state.big", "state.trace"])
        self.assertGreaterEqual(first.head["values"][1]["bytes"], 3_000_000)

    def test_checkpoint_is_at_the_steps_end(self) -> None:
        with Attempt(loop(3, "step == 1 and job.checkpoint()")) as attempt:
            attempt.start()
            place = attempt.at_safe_point()
            self.assertEqual((place["turn"], place["asks"]), (3, "checkpoint"))
            saved = attempt.save()
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\nend 3 True\n")
        with Attempt(loop(3), 2, saved) as attempt:
            self.ends_well(attempt.start(), "2\nend 3 True\n")

    def test_checkpoint_without_steps(self) -> None:
        script = """
import portal
job = portal.job()
state = job.state(at=0)
while state.at < 3:
    print(state.at, flush=True)
    state.at += 1
    job.safe_point()
    if state.at == 2:
        job.checkpoint()
"""
        with Attempt(script) as attempt:
            attempt.start()
            self.assertEqual(attempt.at_safe_point()["asks"], "checkpoint")
            saved = attempt.save()
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\n")
        with Attempt(script, 2, saved) as attempt:
            self.ends_well(attempt.start(), "2\n")

    def test_clock_goes_on(self) -> None:
        script = """
import portal, time
job = portal.job()
state = job.state(step=0)
for step in job.steps(state, "step", 2):
    if step == 0:
        time.sleep(0.3)
    print(job.restored, 0.3 <= job.clock() < 3, flush=True)
"""
        with Attempt(script) as first:
            first.start()
            wait_for(lambda: first.counters()[0] >= 1)
            first.ask()
            first.at_safe_point()
            saved = first.save()
            first.kill()
        with Attempt(script, 2, saved) as second:
            second.greet()
            time.sleep(0.5)
            second.peer.send({"t": "run"})
            self.ends_well(second, "True True\n")

    def test_what_was_printed_is_out(self) -> None:
        """No log line is lost: what is saved here and ends has said all that it printed, buffered or not."""
        script = loop(3).replace(", flush=True", "")
        with Attempt(script) as first:
            first.start(asked=True)
            first.at_safe_point()
            first.go(keep_asking=True)
            first.at_safe_point()
            saved = first.save()
            first.kill()
            self.assertEqual(first.process.stdout.read(), b"0\n")
        with Attempt(script, 2, saved) as second:
            self.ends_well(second.start(), "1\n2\nend 3 True\n")

    def test_save_failed_and_exit(self) -> None:
        with Attempt(loop()) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.peer.send({"t": "save", "id": 1})
            head, _ = attempt.peer.receive()
            attempt.peer.receive_save(head)
            attempt.peer.send({"t": "save-failed", "id": 1, "why": "the disk is full"})
            attempt.go(keep_asking=True)
            attempt.at_safe_point()
            attempt.peer.send({"t": "exit", "why": "enough"})
            code, out, errors = attempt.finish()
        self.assertEqual((code, out), (75, "0\n"))
        self.assertIn("the disk is full", errors)
        self.assertIn("enough", errors)

    def test_connection_breaks_in_a_save(self) -> None:
        """The save counts as not made; the job runs on and connects again."""
        with Attempt(loop(6, "time.sleep(0.02)")) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.peer.send({"t": "save", "id": 1})
            attempt.peer.receive()
            attempt.peer.link.close()
            peer = attempt.accept()
            hello, _ = peer.receive()
            self.assertEqual((hello["t"], hello["again"], hello["turn"]), ("hello", True, 2))
            peer.send({"t": "welcome", "bitExact": False, "restore": None})
            attempt.at_safe_point()
            saved = attempt.save()
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\n3\n4\n5\nend 6 True\n")
        with Attempt(loop(6), 2, saved) as attempt:
            self.ends_well(attempt.start(), "1\n2\n3\n4\n5\nend 6 True\n")

    def test_agent_away(self) -> None:
        """It tries for at most 2 s, goes on, and does not try again for 5 s."""
        with Attempt(loop(300, "time.sleep(0.002)")) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.listener.close()
            os.unlink(attempt.socket_path)
            attempt.peer.link.close()
            begin = time.monotonic()
            self.assertEqual(attempt.process.wait(timeout=30), 0)
            self.assertLess(time.monotonic() - begin, 5.5)

    def test_nonsense_from_the_agent(self) -> None:
        for sent in (b"\xff" * 16, b"\x02\x00\x00\x00\x00\x00\x00\x00{}", b"\x05\x00\x00\x00\x00\x00\x00\x00hello"):
            with self.subTest(sent=sent), Attempt(loop(2)) as attempt:
                attempt.start(asked=True)
                attempt.at_safe_point()
                attempt.ask(0)
                attempt.peer.link.sendall(sent)
                self.ends_well(attempt, "0\n1\nend 2 True\n")

    def test_agent_lost_before_run(self) -> None:
        with Attempt(loop(2)) as attempt:
            attempt.greet()
            attempt.peer.link.close()
            peer = attempt.accept()
            hello, _ = peer.receive()
            self.assertEqual((hello["again"], hello["waiting"], hello["digest"]), (True, True, None))
            peer.send({"t": "welcome", "bitExact": False, "restore": None})
            peer.send({"t": "run"})
            self.ends_well(attempt, "0\n1\nend 2 True\n")

    def saved(self, script: str = "") -> object:
        with Attempt(script or loop(2)) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            return attempt.save()

    def test_agent_lost_around_a_restore(self) -> None:
        saved = self.saved()
        with Attempt(loop(2), 2, saved) as attempt:
            peer = attempt.accept()
            peer.receive()
            peer.send({"t": "welcome", "bitExact": False, "restore": saved.manifest()})
            peer.send({"t": "data", "stream": "graph", "offset": 0}, bytes(saved.streams["graph"]))
            peer.link.close()
            attempt.greet()
            self.assertNotIn("again", attempt.hello)
            self.assertEqual(attempt.restored["digest"], saved.digest)
            attempt.peer.link.close()
            peer = attempt.accept()
            hello, _ = peer.receive()
            self.assertEqual((hello["waiting"], hello["digest"]), (True, saved.digest))
            peer.send({"t": "welcome", "bitExact": False, "restore": None})
            peer.send({"t": "run"})
            self.ends_well(attempt, "0\n1\nend 2 True\n")

    def test_damaged_is_never_interpreted(self) -> None:
        """K-WHOLE-2: a graph that would act if it were opened is placed, and never opened."""
        saved = self.saved()
        with Attempt(loop(2), 2, saved) as attempt:
            peer = attempt.accept()
            peer.receive()
            peer.send({"t": "welcome", "bitExact": False, "restore": saved.manifest()})
            bad = b"cos\nsystem\n(S'echo pwned; touch pwned'\ntR."
            saved.streams["graph"][-len(bad) :] = bad
            peer.send_restore(saved, spoil="chunk 0 of graph")
            code, out, errors = attempt.finish()
            self.assertEqual((code, out), (75, ""))
            self.assertIn("chunk 0 of graph", errors)
            self.assertFalse(os.path.exists(os.path.join(attempt.folder.name, "pwned")))

    def test_wrong_bytes_are_refused(self) -> None:
        """K-WHOLE-3: the digest of what is there after the restore covers the last hop."""
        saved = self.saved()
        saved.streams["buffers"][1_000_001] ^= 1
        with Attempt(loop(2), 2, saved) as attempt:
            answer = attempt.greet()
        self.assertEqual(answer["t"], "restore-refused")
        self.assertIn("not equal", answer["why"])

    def test_hostile_lengths(self) -> None:
        saved = self.saved()
        for frame in (
            {"t": "data", "stream": "graph", "offset": 1 << 40},
            {"t": "data", "stream": "graph", "offset": -1},
            {"t": "data", "stream": "other", "offset": 0},
        ):
            with self.subTest(frame=frame), Attempt(loop(2), 2, saved) as attempt:
                peer = attempt.accept()
                peer.receive()
                peer.send({"t": "welcome", "bitExact": False, "restore": saved.manifest()})
                peer.send(frame, b"x")
                answer, _ = peer.receive()
                self.assertEqual(answer["t"], "restore-refused")

    def test_interrupt_in_a_save(self) -> None:
        script = """
import portal
job = portal.job()
state = job.state(step=0, big=bytearray(40_000_000))
state.big[::4096] = bytes([1]) * len(state.big[::4096])
interrupted = 0
while state.step < 3:
    try:
        for step in job.steps(state, "step", 3):
            print(step, flush=True)
    except KeyboardInterrupt:
        interrupted += 1
        print("interrupted", flush=True)
"""
        with Attempt(script) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.ask(0)
            attempt.peer.send({"t": "save", "id": 1})
            attempt.peer.receive()
            time.sleep(0.2)
            attempt.process.send_signal(signal.SIGINT)
            with self.assertRaises(Lost):
                while True:
                    attempt.peer.receive()
            self.ends_well(attempt, "interrupted\n0\n1\n2\n")

    def test_signals_in_a_save(self) -> None:
        body = "step or __import__('signal').setitimer(0, 0.001, 0.001)"
        script = "import signal; signal.signal(signal.SIGALRM, lambda *_: None)\n" + loop(3, body)
        script += "signal.setitimer(0, 0)\n"
        with Attempt(script) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.go(keep_asking=True)
            for ident in (1, 2):
                attempt.at_safe_point()
                self.assertGreater(attempt.save(ident).bytes, 3_000_000)
                attempt.go(keep_asking=ident == 1)
            self.ends_well(attempt, "0\n1\n2\nend 3 True\n")

    def test_on_suspend_and_on_resume(self) -> None:
        """K-STRICT-1: what is closed in job.on_suspend is not refused."""
        script = """
import portal, socket
from tests import kinds as k
job = portal.job()
loader = k.Plain(sock=None)
def connect():
    loader.sock = socket.socket()
job.on_start(connect)
@job.on_suspend
def close():
    loader.sock.close()
    loader.sock = None
    print("closed", flush=True)
job.on_resume(connect)
state = job.state(step=0, loader=loader)
for step in job.steps(state, "step", 2):
    print(step, loader.sock.fileno() > 0, flush=True)
"""
        with Attempt(script) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            self.assertEqual(attempt.probe()["t"], "probed")
            saved = attempt.save()
            attempt.go()
            self.ends_well(attempt, "closed\n0 True\n1 True\n")
        with Attempt(script, 2, saved) as attempt:
            self.ends_well(attempt.start(), "0 True\n1 True\n")

    def test_on_suspend_that_raises(self) -> None:
        body = "step or job.on_suspend(lambda: 1 / 0)"
        with Attempt(loop(3, body)) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.go(keep_asking=True)
            attempt.at_safe_point()
            refused = attempt.save()
            attempt.go()
            self.ends_well(attempt, "0\n1\n2\nend 3 True\n")
        self.assertIn("ZeroDivisionError", refused["values"][0]["reason"])

    def test_children_do_not_act_as_the_job(self) -> None:
        script = """
import multiprocessing, os, subprocess, sys
import portal
job = portal.job()

def work(queue):
    mine = portal.job()
    inner = mine.state(step=0) if mine is not job or mine._state is None else mine._state
    for step in mine.steps(inner, "step", 2):
        mine.checkpoint()
    queue.put(mine._session is None)

if __name__ == "__main__":
    state = job.state(step=0)
    child = os.fork()
    if child == 0:
        job.checkpoint()
        job.safe_point()
        job.progress(5, 5)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        assert queue.get(timeout=20) is True
        process.join()
    code = "import portal; job = portal.job(); job.state(step=0); job.checkpoint(); print(job._session is None)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip(), flush=True)
    for step in job.steps(state, "step", 2):
        print(step, flush=True)
"""
        with Attempt(script) as attempt:
            attempt.start()
            wait_for(lambda: attempt.counters()[0] >= 1 or attempt.process.poll() is not None)
            code, out, errors = attempt.finish()
            self.assertEqual((code, out), (0, "True\n0\n1\n"), errors)
            turns, done, total = attempt.counters()
            self.assertEqual((turns, done == done, total == total), (3, False, False))

    def test_changed_classes_are_named(self) -> None:
        """K-STRICT-5: what was changed on classes and functions since job.state() is named."""
        script = """
import portal
from tests import kinds as k
job = portal.job()
state = job.state(step=0, counted=k.Counted(), function=k.counts)
for step in job.steps(state, "step", 6):
    if step == 1:
        k.Counted.made += 1
    if step == 2:
        k.Counted.made -= 1
        k.Counted.names.append("x")
        k.counts()
    if step == 3:
        k.Counted.names.clear()
        k.counts.__defaults__[0].clear()
        k.counts.extra = 1
        k.Counted.later = 2
    if step == 4:
        del k.counts.extra, k.Counted.later
"""
        named = []
        with Attempt(script) as attempt:
            attempt.start(asked=True)
            for _ in range(6):
                attempt.at_safe_point()
                answer = attempt.probe()
                named.append([value["path"] for value in answer.get("values", [])])
                attempt.go(keep_asking=True)
            attempt.at_safe_point()
            attempt.go()
            self.ends_well(attempt, "")
        base = "tests.kinds."
        self.assertEqual(
            named,
            [[], [], [base + "Counted.made"], [base + "Counted.names", base + "counts.__defaults__"],
             [base + "Counted.later", base + "counts.extra"], []],
        )  # fmt: skip

    def test_order_of_sets(self) -> None:
        """K-STRICT-6: warned about by path; refused where bits have to be exact."""
        script = """
import portal
from tests import kinds as k
job = portal.job()
state = job.state(step=0, objects={k.Plain(), k.Plain()}, flat={1, 2, 3})
for step in job.steps(state, "step", 2):
    pass
"""
        with Attempt(script) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            saved = attempt.save()
            attempt.go()
            self.assertIn("state.objects: set: the order", self.ends_well(attempt, ""))
        with Attempt(script, 2, saved) as attempt:
            self.ends_well(attempt.start(), "")
        with Attempt(script, bit_exact=True) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            refused = attempt.save()
            attempt.go()
            self.ends_well(attempt, "")
        self.assertEqual([value["path"] for value in refused["values"]], ["state.objects"])

    def test_environment_that_cannot_take_it(self) -> None:
        """K-WHOLE-4."""
        saved = self.saved()
        saved.head["environment"].update(version="3.1.0", packages={"nosuchpackage": "1.0"})
        with Attempt(loop(2), 2, saved) as attempt:
            answer = attempt.greet()
        paths = [value["path"] for value in answer["values"]]
        self.assertEqual(paths, ["environment.version", "environment.packages.nosuchpackage"])
        saved = self.saved()
        with Attempt(loop(2), 2, saved, env={"OMP_NUM_THREADS": "3"}) as attempt:
            self.assertEqual(attempt.greet()["t"], "restored")
        with Attempt(loop(2), 2, saved, bit_exact=True, env={"OMP_NUM_THREADS": "3"}) as attempt:
            answer = attempt.greet()
        self.assertEqual([value["path"] for value in answer["values"]], ["environment.threads"])

    def test_many_refusals(self) -> None:
        body = "step or setattr(state, 'bad', [iter(()) for _ in range(1500)])"
        with Attempt(loop(2, body)) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            attempt.go(keep_asking=True)
            attempt.at_safe_point()
            refused = attempt.save()
            attempt.go()
            self.ends_well(attempt, "0\n1\nend 2 True\n")
        self.assertEqual(len(refused["values"]), 1001)
        self.assertEqual(refused["values"][999]["path"], "state.bad[999]")
        self.assertIn("500 more", refused["values"][1000]["reason"])


if __name__ == "__main__":
    sys.exit(unittest.main())
