"""Portal's job side: which values make up a job's state, and where it may be saved.

    import portal

    job = portal.job()                    # works, and does nothing, outside Portal
    model = build()                       # runs again at every attempt
    state = job.state(step=0, model=model)    # restored in place here

    for step in job.steps(state, "step", 10_000):
        state.loss = train_step(model)
"""

from ._job import Job, job
from ._state import State
from ._version import VERSION as __version__

__all__ = ["Job", "State", "__version__", "job"]
