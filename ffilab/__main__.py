import signal
import sys

try:
    from ffilab.cli import main

    # bootstrap.py keeps them until here.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
except KeyboardInterrupt:
    sys.exit(130)
