"""python -m fagen: the command fagen, which lies in the package as a program of its own."""
from __future__ import annotations

import os
import sys
from typing import NoReturn

from . import _nvrtc


def command() -> str:
    """The path of the program."""
    return os.environ.get("FAGEN_COMMAND") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "fagen")


def main() -> NoReturn:
    """Becomes the command, with this process's arguments; exits with 2 where it cannot be started."""
    nvrtc = _nvrtc.choose()
    if nvrtc:
        os.environ["FAGEN_NVRTC"] = nvrtc
    try:
        os.execv(command(), [command(), *sys.argv[1:]])
    except OSError as e:
        sys.exit(f"fagen: {command()}: {e.strerror}; accepted: a package that was installed by pip, or FAGEN_COMMAND")


if __name__ == "__main__":
    main()
