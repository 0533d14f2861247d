"""Pages that only a run can write: chapter status, kernels, ledger."""

import nbformat

from ffilab import kernels
from ffilab.chapter import left_out
from ffilab.paths import EXECUTED, NOTEBOOKS
from ffilab.progress import minutes


def chapters_page() -> str:
    """A table made from papermill's metadata: chapter, kernel, GIL, budget, duration, when, result."""
    rows = ["| Chapter | Kernel | GIL | Budget | Duration | When (UTC) | Result |", "|---|---|---|---|---|---|---|"]
    for source in sorted(NOTEBOOKS.glob("*.ipynb")):
        path = EXECUTED / source.name
        if not path.exists():
            rows.append(f"| {source.stem} | | | | | | not executed |")
            continue
        notebook = nbformat.read(path, as_version=4)
        facts = notebook.metadata["papermill"]
        first = next(o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if "data" in o)
        spoken = first["data"].get("text/markdown", "")
        gil = "on" if "GIL on" in spoken else "off"
        budget = spoken.partition("Budget: ")[2].partition(".")[0]
        rows.append(
            f"| {source.stem} | {notebook.metadata.kernelspec.name} | {gil} | {budget} | {minutes(facts['duration'])} "
            f"| {facts['start_time'][:16].replace('T', ' ')} | {'failed' if facts['exception'] else 'passed'} |"
        )
    return "\n".join(rows) + "\n"


def kernels_page() -> str:
    """Which interpreters were measured, by which route and with which flags; what was left out and how to add it."""
    present = kernels.present()
    rows = ["| CPython | Version | Route | Same build as its partner | Configured with |", "|---|---|---|---|---|"]
    for kernel in present:
        partner = next((k for k in present if k.interpreter == kernel.interpreter.partner), None)
        same = "no partner here" if partner is None else "yes" if kernels.same_build(kernel, partner) else "no"
        version = kernel.facts["version"].split(" (")[0]
        rows.append(
            f"| {kernel.label} | {version} | {kernel.facts['route']} | {same} | `{kernel.facts['config_args']}` |"
        )
    absent = left_out(present)
    if absent:
        rows.append(
            f"\nLeft out of this run: {', '.join(absent)}. They would have to be compiled, about four minutes each on "
            f'two cores. Add them with `make book KERNELS=all`, or one by one with `make book KERNELS="3.14 3.14t {absent[0]}"`.'
        )
    return "\n".join(rows) + "\n"


def ledger_page(rows: list[dict]) -> str:
    """Every claim with its verdict."""
    lines = ["| Claim | Said | Published | Here | Verdict |", "|---|---|---|---|---|"]
    for row in rows:
        here = "; ".join(
            f"{name}: {value:.4g} [{row['interval'][name][0]:.4g}, {row['interval'][name][1]:.4g}]"
            for name, value in row["measured"].items()
        )
        cells = (f"**{row['id']}**", row["claim"], row["published"], here, f"**{row['verdict']}**: {row['reason']}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    where = {row["chapter"]: row["provenance"] for row in rows if row["provenance"]}
    lines += ["", "Measured on:", ""]
    lines += [
        f"- {{doc}}`{chapter} <../notebooks/{chapter}>`: {facts['cpu']}, {facts['cores']} cores, {facts['system']}, "
        f"{facts['date']}, commit {facts['commit']}, budget {facts['budget']}"
        for chapter, facts in where.items()
    ]
    return "\n".join(lines) + "\n"


def write(folder, rows: list[dict]) -> None:
    """Write the generated parts into `folder`, from where the pages include them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chapters.md").write_text(chapters_page())
    (folder / "kernels.md").write_text(kernels_page())
    (folder / "ledger.md").write_text(ledger_page(rows))
