"""What type checkers read of keywords: Unpack of a TypedDict. It is typing_extensions', which nobody else needs."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Unpack
else:
    class Unpack:
        """Unpack[fields] is fields, to whoever asks for the hints of a function at run time."""

        def __class_getitem__(cls, fields):
            return fields

__all__ = ["Unpack"]
