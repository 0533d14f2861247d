"""The exercises of the chapter "Calls from outside", and their self-checks."""

# What the check of each exercise prints when it is solved.
SOLVED: dict[str, str] = {}
