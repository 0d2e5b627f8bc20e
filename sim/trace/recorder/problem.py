"""What went wrong, in one sentence with its cause and its remedy."""


class Problem(Exception):
    """Ends the recording; its text is the one line that the user sees."""
