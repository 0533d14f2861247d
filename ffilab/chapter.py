"""The frame of a chapter: its first and last cell, and the provenance of its numbers."""

import sys

from IPython.display import Markdown, display

from ffilab import kernels, machine
from ffilab.budget import current
from ffilab.provision.catalogue import ALL


def assert_gil(enabled: bool) -> None:
    """First and last cell: is the GIL of this kernel as the chapter says?

    Raises RuntimeError if not, for instance when an import turned it back on.
    """
    actual = getattr(sys, "_is_gil_enabled", lambda: True)()
    if actual != enabled:
        raise RuntimeError(f"the GIL of this kernel is {'on' if actual else 'off'}, and the chapter needs it otherwise")


def begin(gil_enabled: bool) -> list[str]:
    """Check the kernel, say what this run can show; returns the labels of the kernels present."""
    assert_gil(gil_enabled)
    budget = current()
    present = kernels.present()
    lines = [f"Kernel CPython {sys.version.split()[0]}, GIL {'on' if gil_enabled else 'off'}. Budget: {budget.name}."]
    if not budget.is_result:
        lines.append("**This is a smoke test. It proves that the code runs; none of its figures is a result.**")
    lines.append(f"Measured on: {', '.join(k.label for k in present)}.")
    if absent := left_out(present):
        lines.append(f"Left out: {', '.join(absent)} (add them with `make book KERNELS=all`).")
    for kernel in present:
        partner = next((k for k in present if k.interpreter == kernel.interpreter.partner), None)
        if partner and kernel.interpreter.free_threaded and not kernels.same_build(kernel, partner):
            lines.append(f"{partner.label} and {kernel.label} come from different builds: compare them with care.")
    display(Markdown("\n\n".join(lines)))
    return [k.label for k in present]


def left_out(present: list[kernels.Kernel]) -> list[str]:
    """Labels of the book's interpreters that are not set up here."""
    return [i.label for i in ALL if i not in [k.interpreter for k in present]]


def provenance(*records) -> dict:
    """What stands with every number: machine, method, builds, seeds."""
    first = records[0].run
    return {
        **first["machine"],
        "budget": first["plan"]["budget"],
        "is_result": current().is_result,
        "seeds": [record.run["plan"]["seed"] for record in records],
        "records": [f"{record.path.parent.name}/{record.path.name}" for record in records],
        "kernels": {
            label: f"{k['version']}; {k['route']}; `{k['config_args']}`" for label, k in first["kernels"].items()
        },
    }


def end(gil_enabled: bool, *records) -> None:
    """Last cell: the GIL is still as it was; show where the numbers come from."""
    assert_gil(gil_enabled)
    facts = provenance(*records)
    noise = machine.noise()
    steal = noise["steal_s"] - facts["steal_s"]
    builds = facts.pop("kernels")
    packages = records[0].run["kernels"][f"{sys.version_info[0]}.{sys.version_info[1]}"]["packages"]
    rows = {
        "Machine": f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB"
        + (", virtual machine" if facts["virtual_machine"] else ""),
        "System": f"{facts['system']}, {facts['libc']}, {facts['compiler']}",
        "Frequency governor": facts["governor"] or "not visible here",
        "Noise": f"load {facts['load']:.2f} at the start, {noise['load']:.2f} at the end; "
        f"{steal:.2f} s stolen by the hypervisor",
        "Discarded": "; ".join(record.noise.report for record in records),
        "Run": f"{facts['date']}, commit {facts['commit']}, budget {facts['budget']}",
        "Seeds": ", ".join(map(str, facts["seeds"])),
        **{f"CPython {label}": build for label, build in builds.items()},
        "Packages": ", ".join(
            f"{name} {packages[name]}" for name in ("numpy", "scipy", "pandas", "seaborn") if name in packages
        ),
        "Records": ", ".join(facts["records"]),
    }
    display(Markdown("| | |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in rows.items())))
