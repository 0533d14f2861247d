"""What a kernel of `make lab` runs first (as PYTHONSTARTUP): a cell that runs before the chapter has begun, as after a
restart, is forgiven, too."""

from pathlib import Path

from ffilab.page.forgiving import forgive

forgive(Path.cwd().name)
