"""A lock by which processes compile side by side and time in turns."""
import contextlib
import fcntl


@contextlib.contextmanager
def alone(path):
    """While no other process times that has this file."""
    if not path:
        yield
        return
    with open(path, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
