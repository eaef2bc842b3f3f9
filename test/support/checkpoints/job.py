"""A job whose result depends on all that a careless checkpoint loses: momentum, a schedule, two random states, order."""
import os
import random
import socket
import sys
import time

import portal

job = portal.job()
random.seed(11)
chooser = random.Random(7)
weights = [0.0] * 64
model = {"weights": weights, "momentum": [0.0] * 64}
big = bytearray(700_000)
state = job.state(step=0, model=model, alias=weights, chooser=chooser, big=big, trace=[], sock=None)
assert state.alias is state.model["weights"] is weights and state.chooser is chooser and state.big is big

print("begin", state.step, flush=True)
for step in job.steps(state, "step", 30):
    gradient = [chooser.gauss(0, 1) + random.random() for _ in weights]
    for i, g in enumerate(gradient):
        model["momentum"][i] = 0.9 * model["momentum"][i] + g
        weights[i] -= 0.1 / (1 + step) * model["momentum"][i]
    big[step * 20_000] = step + 1
    state.trace.append(step)
    job.progress(step + 1, 30)
    if os.environ.get("OPEN_SOCKET"):
        state.sock = socket.socket()
    time.sleep(float(os.environ.get("PAUSE", "0")))
print("end", repr(sum(weights)), sum(big), state.trace, random.random(), sys.hash_info.width, flush=True)
