"""torch's tensors, where the job has loaded torch: carried as windows on memory, through numpy, whose arrays they may share."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any, Dict, Optional, Tuple

from ._graph import CALL_AND_DROP, End, Graph, Then

# What numpy has no type for, as what lies in memory instead.
STAND_INS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
Fault = Tuple[str, str]


def torch() -> Any:
    return sys.modules["torch"]


def _dtype_name(value: Any) -> str:
    return str(value.dtype).partition(".")[2]


def _fault(value: Any) -> Optional[Fault]:
    if value.grad_fn is not None:
        return ("it is part of a computation that its gradient needs", "keep tensor.detach() instead")
    if value.layout is not torch().strided or value.is_quantized or value.is_meta or value.is_conj() or value.is_neg():
        return ("only dense tensors are carried", "keep what it is made of instead")
    if getattr(value, "_backward_hooks", None):
        return ("its hooks cannot be carried", "register them after job.state()")
    try:
        importlib.import_module("numpy")
    except ImportError:
        return ("tensors are carried through numpy, which is not installed", "install numpy")
    return None


def _array(value: Any) -> Any:
    """The tensor's memory as an array; of a tensor that is not in the machine's memory, a copy."""
    plain = value.detach()
    if plain.device.type != "cpu":
        plain = plain.cpu()
    stand_in = STAND_INS.get(_dtype_name(value))
    return (plain if stand_in is None else plain.view(getattr(torch(), stand_in))).numpy()


class Tensors(Graph):
    def _tensor(self, value: Any) -> None:
        if self.again(value):
            return
        fault = _fault(value)
        if fault is not None:
            self.refuse(value, *fault)
            return
        outer = self.enter(value)
        node = self.here
        array = _array(value)
        self.keep.append(array)
        self.paths.label(array, "")
        told = (_dtype_name(value), bool(value.requires_grad), str(value.device))
        self.stack.append(Then(lambda: self._rest_of_tensor(value, outer)))
        if id(value) in self.live:
            self.begin(value, b"")
            self.stack.append(End(pickle.TUPLE3 + pickle.REDUCE + pickle.POP, node))
            self.stack.extend((told, array))
            self.named("portal._tensors", "fill_tensor")
            self.out += self.reference(self.memo[id(value)])
            return
        self.stack.append(Then(lambda: self._made_tensor(value)))
        self.stack.extend((told, array))
        self.named("portal._tensors", "make_parameter" if type(value).__name__ == "Parameter" else "make_tensor")
        self.keep.append(told)

    def _made_tensor(self, value: Any) -> None:
        self.out += pickle.TUPLE2 + pickle.REDUCE
        self.remember(value)

    def _rest_of_tensor(self, value: Any, outer: int) -> None:
        parts: Dict[str, Any] = {name: part for name, part in vars(value).items()}
        if value.grad is not None:
            parts["grad"] = value.grad
        if not parts:
            self.here = outer
            return
        self.keep.append(parts)
        self.field_dicts[id(parts)] = self.here
        self.named("portal._tensors", "put_parts")
        self.out += self.reference(self.memo[id(value)]) + pickle.EMPTY_DICT
        self.pairs(parts, CALL_AND_DROP, outer)

    def _torch_generator(self, value: Any) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        content = bytes(value.get_state().tolist())
        if id(value) in self.live:
            self.begin(value, b"")
            self.named("portal._tensors", "fill_generator")
            self.out += self.reference(self.memo[id(value)])
            self.write_bytes(content)
            self.out += CALL_AND_DROP
        else:
            self.named("portal._tensors", "make_generator")
            self.write_str(str(value.device))
            self.write_bytes(content)
            self.out += pickle.TUPLE2 + pickle.REDUCE
            self.remember(value)
        self.here = outer


# ---- called from a graph


def _from(array: Any, told: Tuple[str, bool, str]) -> Any:
    made = importlib.import_module("torch").from_numpy(array)
    name, _, device = told
    if name in STAND_INS:
        made = made.view(getattr(torch(), name))
    return made if device == "cpu" else made.to(device)


def make_tensor(array: Any, told: Tuple[str, bool, str]) -> Any:
    made = _from(array, told)
    return made.requires_grad_() if told[1] else made


def make_parameter(array: Any, told: Tuple[str, bool, str]) -> Any:
    made = _from(array, told)
    return torch().nn.Parameter(made, requires_grad=told[1])


def fill_tensor(live: Any, array: Any, told: Tuple[str, bool, str]) -> None:
    from ._rebuild import Unfit

    made = _from(array, told)
    if live.dtype != made.dtype or live.shape != made.shape or str(live.device) != told[2]:
        raise Unfit(live, f"the saved one is a tensor of {told[0]}, shape {tuple(made.shape)}, on {told[2]}")
    if made.numel() and live.stride() != made.stride():
        raise Unfit(live, f"the saved one lies in memory with strides {made.stride()}, not {live.stride()}")
    with torch().no_grad():
        live.detach().copy_(made)
    if live.is_leaf and live.requires_grad != told[1]:
        live.requires_grad_(told[1])
    live.grad = None
    vars(live).clear()


def put_parts(target: Any, parts: Dict[str, Any]) -> None:
    for name, part in parts.items():
        setattr(target, name, part)


def make_generator(device: str, content: bytes) -> Any:
    made = importlib.import_module("torch").Generator(device=device)
    fill_generator(made, content)
    return made


def fill_generator(generator: Any, content: bytes) -> None:
    generator.set_state(torch().tensor(list(content), dtype=torch().uint8))


def random_states() -> Dict[str, Any]:
    """The states of torch's own generators."""
    found: Dict[str, Any] = {"cpu": bytes(torch().get_rng_state().tolist())}
    if torch().cuda.is_available() and torch().cuda.is_initialized():
        found["cuda"] = [bytes(state.cpu().tolist()) for state in torch().cuda.get_rng_state_all()]
    return found


def put_random_states(found: Dict[str, Any]) -> None:
    torch_ = importlib.import_module("torch")
    torch_.set_rng_state(torch_.tensor(list(found["cpu"]), dtype=torch_.uint8))
    if "cuda" in found:
        torch_.cuda.set_rng_state_all([torch_.tensor(list(state), dtype=torch_.uint8) for state in found["cuda"]])
