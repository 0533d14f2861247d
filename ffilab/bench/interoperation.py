"""Records as pyperf files, so that `pyperf stats`, `hist`, `compare_to` and `metadata` open them.

One file per interpreter: `compare_to` compares benchmarks of the same name across files. A pyperf
run is one of our restarts; its values are the blocks' seconds per loop.
"""

from pathlib import Path

import numpy as np
import pyperf

from ffilab.bench.record import Record


def export(record: Record) -> list[Path]:
    """Write `<record>.<interpreter>.json` beside the record; returns the paths. Arms and interpreters without a value are left out."""
    paths = []
    for interpreter in record.interpreters:
        benchmarks = [
            benchmark
            for arm in record.run["plan"]["arms"]
            if (benchmark := _benchmark(record, interpreter, arm["name"]))
        ]
        if not benchmarks:
            continue
        path = record.path.with_suffix(f".{interpreter}.json")
        pyperf.BenchmarkSuite(benchmarks).dump(str(path), replace=True)
        paths.append(path)
    return paths


def _benchmark(record: Record, interpreter: str, arm: str) -> pyperf.Benchmark | None:
    try:
        times = record.by_restart(interpreter, arm)
    except KeyError:
        return None
    facts = record.run["machine"]
    metadata = {
        "name": arm,
        "unit": "second",
        "cpu_model_name": facts["cpu"],
        "cpu_count": facts["cores"],
        "platform": facts["system"],
        "python_version": record.run["interpreters"][interpreter]["version"],
        "python_implementation": "cpython",
        "ffilab_seed": record.run["plan"]["seed"],
        "ffilab_commit": facts["commit"],
        "ffilab_noise": record.noise.report,
        "date": facts["date"].replace("T", " ")[:19],
    }
    runs = [
        pyperf.Run(tuple(float(ns) / 1e9 for ns in row[np.isfinite(row)]), metadata=metadata, collect_metadata=False)
        for row in times
        if np.isfinite(row).any()
    ]
    # Every batch of an arm may have had company on its core, and be discarded.
    return pyperf.Benchmark(runs) if runs else None
