import signal
import sys

try:
    from ffilab.cli import main

    # bootstrap.py keeps them until here: in the middle of an import they may be lost, and show a traceback.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
except KeyboardInterrupt:
    sys.exit(130)
