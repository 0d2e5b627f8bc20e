"""What haul's failures are raised as."""


class Error(RuntimeError):
    """What haul could not do. str(error) is one sentence with cause and remedy."""

    #: The negative HAUL_E* number of haul.h.
    code: int = 0
    #: Its name without the prefix, such as "ENOTSUP".
    name: str = ""


Error.__module__ = "haul"
