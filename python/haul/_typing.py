"""Types of the stubs."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Union

from ._haul import Extent


class SupportsDLPack(Protocol):
    def __dlpack__(self, **options: Any) -> Any: ...


try:
    from typing_extensions import Buffer
except ImportError:
    Buffer = Any

Memory = Union[Buffer, SupportsDLPack, Extent]
Side = Union[Memory, Sequence[Memory]]
Affinity = Literal["cacheable", "non-cacheable", "neutral"]
Mover = Literal["auto", "caller", "dedicated"]
