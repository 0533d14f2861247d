"""Many machines: a run packed into one file to be given away, and one page made of many of them."""
