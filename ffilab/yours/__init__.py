"""The instrument for the reader's own code: any CPython, any statement; on the command line as `ffilab time` and
`ffilab scale`, and as `ffilab.compare`."""
