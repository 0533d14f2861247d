"""Texts that the chapter makes itself, the same ones from the same seed. Standard library only."""

import random

LINES = 7515
SEED = 1851
# Lengths of a novel's lines, cut as the original cut its own: about 160 characters on average, most of them shorter, a
# few very long. Log-normal.
MU, SIGMA, LONGEST = 4.8, 0.75, 2000
ALPHABET = b"etaoinshrdlucmfwypvbgk' ,.-;ETAOINSHRDLU        "
ACCENTED = "é"
# Share of lines with a character that is not ASCII, in the second text: 2,892 of 7,515, as in the original's.
NOT_ASCII = 2892 / 7515


def lengths(lines=LINES, seed=SEED):
    """Characters of each line."""
    random_ = random.Random(seed)
    return [min(LONGEST, max(1, round(random_.lognormvariate(MU, SIGMA)))) for _ in range(lines)]


def ascii_text(lines=LINES, seed=SEED):
    """(bytes, length of each line in bytes) of a text that is ASCII throughout, without line breaks."""
    each = lengths(lines, seed)
    table = bytes(ALPHABET[i % len(ALPHABET)] for i in range(256))
    return random.Random(seed + 1).randbytes(sum(each)).translate(table), each


def mixed_text(lines=LINES, seed=SEED):
    """(bytes, length of each line in bytes) of a text with an accented letter in the share NOT_ASCII of all lines."""
    data, each = ascii_text(lines, seed)
    random_, parts, at = random.Random(seed + 2), [], 0
    for length in each:
        line = data[at : at + length]
        at += length
        if random_.random() < NOT_ASCII:
            place = random_.randrange(length)
            line = line[:place] + ACCENTED.encode() + line[place + 1 :]
        parts.append(line)
    return b"".join(parts), [len(part) for part in parts]
