"""libnvrtc.so in the wheels beside this interpreter's packages, such as those that PyTorch brings.

The C library searches the loader's path, CUDA_HOME, /usr/local/cuda and usual places of wheels; it does not know sys.path.
"""
from __future__ import annotations

import glob
import os
import sys
from typing import List, Optional

PATTERNS = ("nvidia/cu[0-9]*/lib/libnvrtc.so.[0-9]*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.[0-9]*")


def _version(file: str) -> int:
    """13 of libnvrtc.so.13; 0 of what is no such name."""
    last = file.rsplit(".", 1)[-1]
    return int(last) if last.isdigit() else 0


def in_wheels(folders: Optional[List[str]] = None) -> Optional[str]:
    """The newest libnvrtc of a wheel in sys.path (or in `folders`); None where there is none."""
    found = [file for folder in (sys.path if folders is None else folders) for pattern in PATTERNS
             for file in glob.glob(os.path.join(glob.escape(folder or "."), pattern))]
    return max((f for f in found if _version(f) >= 12), key=_version, default=None)


def choose() -> Optional[str]:
    """What to hand to the C library: None where FAGEN_NVRTC says it, or where no wheel has one."""
    return None if os.environ.get("FAGEN_NVRTC") else in_wheels()
