"""The instrument for the reader's own code: any CPython, any statement; on the command line and as `ffilab.compare`."""
