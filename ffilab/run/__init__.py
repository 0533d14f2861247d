"""What the records mean: intervals, tests, verdicts."""
