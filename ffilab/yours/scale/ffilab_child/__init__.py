"""What a measured process of `ffilab scale` gets: this folder alone, and the standard library."""
