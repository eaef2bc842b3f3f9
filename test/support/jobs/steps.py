"""One step after another, each told in the log and in a file outside of every machine, where attempts that overlap would show.

Goes on until the file GATE is there. What it prints follows from the step before, so that a step lost, doubled or restored
wrongly breaks the row.
"""
import os
import sys
import time

import portal

job = portal.job()
trace = os.open(os.environ["TRACE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def tell(word, step):
    os.write(trace, f"{word} {job.attempt} {step} {time.monotonic_ns() // 1000}\n".encode())


state = job.state(step=0, x=1, ballast=bytearray(os.urandom(int(os.environ.get("BALLAST", "1000")))))
tell("begin", state.step)
pause = float(os.environ.get("PAUSE", "0.01"))
for step in job.steps(state, "step", 1_000_000):
    state.x = (state.x * 1103515245 + 12345) % 2147483648
    if state.ballast:
        state.ballast[step * 4099 % len(state.ballast)] = state.x % 256
    sys.stdout.write(f"step {step} x {state.x}\n")
    sys.stdout.flush()
    tell("step", step)
    time.sleep(pause)
    if os.path.exists(os.environ["GATE"]):
        break
tell("end", state.step)
print("done", state.x, sum(state.ballast), flush=True)
