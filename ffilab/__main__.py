from ffilab.cli import main

main()
