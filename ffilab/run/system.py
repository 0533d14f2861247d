"""What the system shows of itself, in small files and by what programs print. Standard library only: `make doctor`
imports this."""

import platform
import re
import subprocess
from functools import partial
from pathlib import Path


def read_text(path) -> str:
    """The text of a small file of the system, stripped; empty if it cannot be read."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def output(*command) -> str:
    """What a program prints, stripped; empty if it is not here, or has no end."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu_model() -> str:
    """Name of the processor, as the system gives it; on arm64, where Linux may not tell, what `lscpu` knows."""
    linux, elsewhere = partial(read_text, "/proc/cpuinfo"), partial(output, "sysctl", "machdep.cpu.brand_string")
    for source in (linux, partial(output, "lscpu"), elsewhere):
        if named := re.search(r"^(?:model name|machdep\S+)\s*: (.*)", source(), re.MULTILINE | re.IGNORECASE):
            return named[1].strip()
    return platform.processor() or platform.machine()
