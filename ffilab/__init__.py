"""The laboratory behind "Hidden Corners of the Python FFI".

Data flows one way: kernels (who runs), native (what runs), ffilab.measure (how
it is measured), records on disk, notebook (what it means), ledger, book.
"""
