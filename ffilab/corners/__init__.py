"""One module per chapter: what its cells call. Measurements come from ffilab.bench, meaning from ffilab.judge."""
