"""A real training in plain Python, small enough to watch: a network learns two intertwined spirals.

    portal run -- python3 examples/train.py

What a careless checkpoint would lose is all here: momentum, a learning rate schedule, a random state that draws the
batches and the noise, and an averaged copy of the weights. Nothing below is about saving: what makes up the state is said
once, in `job.state`, and the loop is a `job.steps`. Without Portal it runs as it is, with sdk/python on the PYTHONPATH.
"""

import argparse
import hashlib
import math
import random
import struct
import time

import portal


class Network:
    """Two inputs, one hidden layer of tanh, one output: weights and their velocities as plain lists."""

    def __init__(self, hidden, rng):
        self.inner = [[rng.gauss(0, 1.5) for _ in range(3)] for _ in range(hidden)]
        self.outer = [rng.gauss(0, 1 / math.sqrt(hidden)) for _ in range(hidden + 1)]

    def forward(self, x, y):
        active = [math.tanh(a * x + b * y + c) for a, b, c in self.inner]
        total = self.outer[-1]
        for weight, value in zip(self.outer, active):
            total += weight * value
        return active, 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def weights(self):
        return [w for row in self.inner for w in row] + self.outer


class Momentum:
    """Gradient descent with momentum: each weight goes on a while in the direction that it went."""

    def __init__(self, network, keep):
        self.network = network
        self.keep = keep
        self.inner = [[0.0] * 3 for _ in network.inner]
        self.outer = [0.0] * len(network.outer)

    def step(self, inner, outer, rate):
        for velocity, gradient, weights in zip(self.inner, inner, self.network.inner):
            for i in range(3):
                velocity[i] = self.keep * velocity[i] - rate * gradient[i]
                weights[i] += velocity[i]
        for i, gradient in enumerate(outer):
            self.outer[i] = self.keep * self.outer[i] - rate * gradient
            self.network.outer[i] += self.outer[i]


class Schedule:
    """A learning rate that rises for a while and then falls along a cosine."""

    def __init__(self, peak, warm_up, steps):
        self.peak, self.warm_up, self.steps = peak, warm_up, steps
        self.at = 0

    def next(self):
        self.at += 1
        if self.at <= self.warm_up:
            return self.peak * self.at / self.warm_up
        done = (self.at - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.peak * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def spirals(points, rng):
    """Two spirals, one turned against the other; the label says which."""
    data = []
    for i in range(points):
        along = 0.4 + 2.8 * i / points
        for label in (0, 1):
            angle = along * 2.2 + math.pi * label
            data.append((along * math.cos(angle) / 3 + rng.gauss(0, 0.02), along * math.sin(angle) / 3 + rng.gauss(0, 0.02), label))
    return data


def train_step(network, optimizer, batch, rate, rng):
    inner = [[0.0] * 3 for _ in network.inner]
    outer = [0.0] * len(network.outer)
    loss = 0.0
    for x, y, label in batch:
        x += rng.gauss(0, 0.01)
        y += rng.gauss(0, 0.01)
        active, guess = network.forward(x, y)
        loss -= math.log(guess if label else 1 - guess)
        error = (guess - label) / len(batch)
        for i, value in enumerate(active):
            outer[i] += error * value
            back = error * network.outer[i] * (1 - value * value)
            gradient = inner[i]
            gradient[0] += back * x
            gradient[1] += back * y
            gradient[2] += back
        outer[-1] += error
    optimizer.step(inner, outer, rate)
    return loss / len(batch)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--steps", type=int, default=1500)
    options.add_argument("--hidden", type=int, default=24)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--pace", type=float, default=0.0, help="seconds that a step takes at least, to watch it")
    chosen = options.parse_args()

    job = portal.job()
    rng = random.Random(chosen.seed)
    data = spirals(120, rng)
    network = Network(chosen.hidden, rng)
    optimizer = Momentum(network, 0.9)
    state = job.state(
        step=0,
        network=network,
        optimizer=optimizer,
        schedule=Schedule(0.25, chosen.steps // 20, chosen.steps),
        average=list(network.weights()),
        rng=rng,
        loss=0.0,
    )

    for step in job.steps(state, "step", chosen.steps):
        began = time.monotonic()
        rate = state.schedule.next()
        loss = train_step(network, optimizer, rng.sample(data, 32), rate, rng)
        state.loss = loss if step == 0 else 0.98 * state.loss + 0.02 * loss
        for i, weight in enumerate(network.weights()):
            state.average[i] += 0.01 * (weight - state.average[i])
        job.progress(step + 1, chosen.steps)
        if (step + 1) % (chosen.steps // 10 or 1) == 0:
            print(f"step {step + 1:5d}   loss {state.loss:.6f}   rate {rate:.4f}   attempt {job.attempt}", flush=True)
        if chosen.pace > 0:
            time.sleep(max(0.0, chosen.pace - (time.monotonic() - began)))

    numbers = network.weights() + state.average + [state.loss]
    digest = hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()
    print(f"final loss {state.loss!r}")
    print(f"final weights sha256:{digest}", flush=True)


if __name__ == "__main__":
    main()
