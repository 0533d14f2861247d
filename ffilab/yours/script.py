"""Where the script `ffilab` begins: Ctrl-C while its modules are imported ends it as Ctrl-C ends any program."""

import sys


def main():
    try:
        from ffilab.yours import command

        command.main()
    except KeyboardInterrupt:
        sys.exit(130)
