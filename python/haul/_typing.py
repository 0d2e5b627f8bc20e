"""Types of the stubs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

from . import _haul
from ._haul import Extent

if TYPE_CHECKING:
    from ._atomic import Window


class SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...


try:
    from typing_extensions import Buffer
except ImportError:
    Buffer = Any

# (Type checkers do not see that haul's own classes have buffers.)
Memory = Union[Buffer, SupportsDLPack, Extent, _haul.Memory, "Window"]
Side = Union[Memory, Sequence[Memory]]
Affinity = Literal["cacheable", "non-cacheable", "neutral"]
Mover = Literal["auto", "caller", "dedicated"]
