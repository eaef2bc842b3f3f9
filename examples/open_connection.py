"""A job whose state cannot be carried: an open connection belongs to the machine that it was opened on.

    portal run -d --name linked -- python3 examples/open_connection.py
    portal move linked                 # refused: state.link['socket'] is named, and the job runs on
"""

import socket
import time

import portal

job = portal.job()
near, far = socket.socketpair()
state = job.state(step=0, seen=[], link={"peer": "a service", "socket": near})

for step in job.steps(state, "step", 100_000):
    far.send(bytes([step % 251]))
    state.seen = [*state.seen[-99:], near.recv(1)[0]]
    if step % 100 == 0:
        print(f"step {step}: the connection answers", flush=True)
    time.sleep(0.01)
