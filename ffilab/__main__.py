import sys

try:
    from ffilab.cli import main

    main()
except KeyboardInterrupt:  # Ctrl-C while modules are still being imported
    sys.exit(130)
