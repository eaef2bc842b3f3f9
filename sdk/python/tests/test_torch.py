"""Tensors, modules, optimizers and schedulers, where torch is installed."""

import sys
import unittest

from .fake_agent import Attempt

try:
    import torch
except ImportError:
    torch = None

SCRIPT = """
import torch
import portal
torch.manual_seed(5)
torch.set_num_threads(1)
job = portal.job()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.drop = torch.nn.Dropout(0.3)
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(self.second(self.drop(torch.relu(self.first(x)))))

net = Net()
weight = net.first.weight
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
average = torch.zeros(8, 8)
generator = torch.Generator().manual_seed(3)
frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
state = job.state(step=0, net=net, optimizer=optimizer, scheduler=scheduler, average=average, generator=generator, frozen=frozen)
for step in job.steps(state, "step", 5):
    x = torch.rand(16, 8, generator=generator)
    loss = ((net(x) - x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    average.mul_(0.9).add_(weight.detach())
    if step == 0:
        base = torch.arange(20.0)
        state.extra = {"base": base, "view": base[2:8:2], "half": torch.ones(3, dtype=torch.bfloat16), "size": base.size(),
                       "numpy": base.numpy(), "dtype": torch.float64, "device": torch.device("cpu"), "empty": torch.zeros(0, 3)}
        state.own = torch.zeros(4, requires_grad=True)
    state.extra["base"] += 1
    (state.own * step).sum().backward()
    state.frozen += 1
    e = state.extra
    print(step, loss.item().hex(), float(average.sum()).hex(), float(weight.sum()).hex(), e["view"].tolist(), e["numpy"][3],
          e["half"], e["size"], e["dtype"], e["device"], e["empty"].shape, state.own.grad.tolist(), frozen.tolist(),
          frozen is state.frozen, net.second.weight is weight, state.average is average, optimizer.param_groups[0]["lr"],
          scheduler.last_epoch, net.norm.running_mean.sum().item().hex(), flush=True)
"""

REFUSED = """
import torch
import portal
job = portal.job()
state = job.state(step=0)
w = torch.ones(3, requires_grad=True)
state.computed = [w * 2]
state.sparse = torch.eye(3).to_sparse()
state.storage = torch.ones(3).storage()
for step in job.steps(state, "step", 2):
    print(step, flush=True)
"""


class Tensors(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        if torch is None:
            reason = "torch is not installed here (python3 -m pip install torch), so carrying its tensors is not tested"
            print(f"skipped: {reason}", file=sys.stderr)
            raise unittest.SkipTest(reason)

    def test_a_training_goes_on_to_the_bit(self) -> None:
        with Attempt(SCRIPT) as whole:
            code, out, errors = whole.start().finish()
        self.assertEqual((code, out.count("\n")), (0, 5), errors)
        for turn in (0, 1, 3, 5):
            with self.subTest(turn=turn), Attempt(SCRIPT) as first:
                first.start(asked=True)
                for _ in range(turn):
                    first.at_safe_point()
                    first.go(keep_asking=True)
                first.at_safe_point()
                saved = first.save()
                self.assertNotIsInstance(saved, dict, saved)
                first.kill()
                before = first.process.stdout.read().decode()
                with Attempt(SCRIPT, 2, saved) as second:
                    code, after, errors = second.start().finish()
                self.assertEqual((code, before + after), (0, out), errors)

    def test_refused(self) -> None:
        with Attempt(REFUSED) as attempt:
            attempt.start(asked=True)
            attempt.at_safe_point()
            refused = attempt.probe()
            attempt.go()
            self.assertEqual(attempt.finish()[0], 0)
        paths = [value["path"] for value in refused["values"]]
        self.assertEqual(paths, ["state.computed[0]", "state.sparse", "state.storage"])
