"""The state of a job: an object whose attributes are its values."""

from __future__ import annotations

from typing import Any


class State:
    """What `job.state(step=0, model=model)` returns. `state.step`, `state.model` are the values; what is set, changed
    or deleted on it later changes the state."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the state has no value {name!r}; it has {', '.join(sorted(self.__dict__)) or 'none'}")

    def __repr__(self) -> str:
        return f"<portal state: {', '.join(self.__dict__) or 'empty'}>"
