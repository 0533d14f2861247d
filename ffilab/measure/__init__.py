"""How it is measured: plans, workers, runs, and the records that they write."""
