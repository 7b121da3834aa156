"""What PyTorch's compiler does not trace: a program is cut in two there. With fullgraph=True it says so."""
from __future__ import annotations

from typing import Any, Callable

import torch

from .. import _append, _low

disable: Callable[..., Any] = torch.compiler.disable
append = disable(_append.append)
attention = disable(_low.attention)
