"""What went wrong, in one sentence with its cause and its remedy."""


class Problem(Exception):
    """Ends a guest's run; its text is the one line that the user sees."""
