"""What a state stands in besides its values (K-WHOLE-4), and what of it cannot take the state on another machine."""

from __future__ import annotations

import importlib
import locale
import os
import platform
import resource
import sys
import time
from typing import Any, Dict, Iterable, List

from ._refusal import Refusal

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_CBWR")
LIMITS = ("RLIMIT_NOFILE", "RLIMIT_STACK", "RLIMIT_AS")


def record(modules: Iterable[str]) -> Dict[str, Any]:
    """The environment, with the versions of the packages that the carried classes come from."""
    packages = {}
    for name in sorted({module.partition(".")[0] for module in modules} - {"__main__", "builtins"}):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            packages[name] = version
    return {
        "language": "python",
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "hashSeed": hash_seed(),
        "threads": {name: os.environ[name] for name in THREADS if name in os.environ},
        "cpus": _cpus(),
        "byteorder": sys.byteorder,
        "packages": packages,
        "locale": locale.setlocale(locale.LC_ALL, None),
        "timezone": list(time.tzname),
        "umask": _umask(),
        "cwd": _cwd(),
        "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in LIMITS if hasattr(resource, name)},
    }


def hash_seed() -> str:
    """`PYTHONHASHSEED` as this process took it; `random`: none was set."""
    if not sys.flags.hash_randomization:
        return "0"
    return os.environ.get("PYTHONHASHSEED") or "random"


def unfit(saved: Dict[str, Any], bit_exact: bool) -> List[Refusal]:
    """What of this environment cannot take a state saved in that one."""
    for name in saved.get("packages", {}):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    here = record(saved.get("packages", {}))
    found: List[Refusal] = []

    def compare(name: str, there: Any, now: Any, reason: str, advice: str) -> None:
        if there is not None and there != now:
            found.append(Refusal(f"environment.{name}", str(now), f"saved under {there}: {reason}", advice))

    same = "run it where this is the same"
    compare("language", saved.get("language"), "python", "another language's state", same)
    compare("implementation", saved.get("implementation"), here["implementation"], "objects differ", same)
    compare("version", _minor(saved.get("version")), _minor(here["version"]), "classes of Python differ", same)
    compare("byteorder", saved.get("byteorder"), here["byteorder"], "numbers in memory differ", same)
    for name, version in saved.get("packages", {}).items():
        loaded = here["packages"].get(name, "not there")
        compare(f"packages.{name}", version, loaded, "classes in the state come from it", f"use {name} {version}")
    if bit_exact:
        equal = "equal values, but not equal bits, are all that it can promise"
        for name in ("machine", "hashSeed", "threads", "cpus"):
            compare(name, saved.get(name), here[name], equal, f"{same}, or run without --bit-exact")
    return found


def _minor(version: Any) -> Any:
    return ".".join(version.split(".")[:2]) if isinstance(version, str) else None


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _umask() -> str:
    # Reading it by setting it would race with the job's other threads.
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("Umask:"):
                    return line.split()[1]
    except OSError:
        pass
    return ""


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
