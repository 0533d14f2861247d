"""How it is measured: plan, worker, runner, record, each in its own file."""
