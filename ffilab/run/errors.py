"""The one exception that a user is meant to see."""


class UserError(Exception):
    """Something that the reader can fix. The text says what is wrong and what to do next.

    The command line prints it as one sentence and exits with a non-zero code;
    a traceback always means a defect of ours.
    """
