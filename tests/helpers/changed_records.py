"""Golden records of which the truth was changed: fast and slow swapped, all effects taken away, or a process of each
case disturbed."""

import json
import math
import re
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import median

# The run's own controls stay as they are.
CONTROLS = re.compile(r"control \d|empty loop|apart|copied|reference")
# Lists of samples, and not of answers to one question each.
LONG = 20
INVERTED, EFFECTLESS, DISTURBED = "inverted", "effectless", "disturbed"


def changed(source: Path, target: Path, how: str) -> None:
    """Write every record of a folder of records again, with its effects inverted or taken away, or disturbed."""
    for path in sorted(source.glob("*/*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        children = [line for line in lines if line["kind"] == "child"]
        if how == DISTURBED:
            disturb(children)
        else:
            if any(line["kind"] == "block" for line in lines):
                change_times(lines, how)
            change_processes(children, how)
        made = target / path.relative_to(source)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def beside_load(source: Path, target: Path, name: str = "*") -> Path:
    """Write the records of a chapter again as if others had used the cores all the time; of one plan, if it is
    named."""
    shutil.copytree(source, target)
    for path in target.glob(f"{name}.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "wall_s" in line:
                line |= {"strangers_s": max(1.0, line["wall_s"])}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return target


def disturb(children: list[dict]) -> None:
    """Let others take the CPU in one process of each case, and nowhere else: in the first round of an experiment's
    first case, in the second of its second, and so on, so that each lacks its partners."""
    cases = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for child in children:
        case = json.dumps([child["interpreter"], child["factors"]])
        place = child["run"], child.get("replaces", child["process"])
        cases[child["title"]][case][place].append(child)
    for by_case in cases.values():
        for number, (_, places) in enumerate(sorted(by_case.items())):
            for turn, tries in enumerate(places.values()):
                for child in tries:
                    taken = child["wall_s"] * (turn == number % len(places))
                    child |= {"strangers_s": taken, "throttled_s": 0.0, "steal_s": 0.0}


def change_times(lines: list[dict], how: str) -> None:
    """Within each interpreter the logarithm of each arm's time per loop is mirrored at the mean of all arms, and the
    interpreters are swapped; or every arm gets the same centre and keeps its own scatter."""
    loops = next(line["loops"] for line in lines if line["kind"] == "loops")
    blocks = [line for line in lines if line["kind"] == "block"]
    by_cell = defaultdict(list)
    for block in blocks:
        for cell, ns in block["ns"].items():
            if not CONTROLS.search(cell):
                by_cell[cell].append(math.log(ns / loops[cell]))
    centres = {cell: median(found) for cell, found in by_cell.items()}
    by_label = defaultdict(list)
    for cell, centre in centres.items():
        by_label[cell.split("/")[0]].append(centre)
    middles = {label: sum(found) / len(found) for label, found in by_label.items()}
    middle = sum(middles.values()) / len(middles) if middles else 0
    target = {}
    for cell in centres:
        label, _, arm = cell.partition("/")
        if how == EFFECTLESS:
            target[cell] = middle
        else:
            other = label.removesuffix("t") if label.endswith("t") else f"{label}t"
            twin = f"{other}/{arm}" if f"{other}/{arm}" in centres else cell
            target[cell] = 2 * middles[twin.split("/")[0]] - centres[twin]
    for block in blocks:
        for cell in block["ns"]:
            if cell in centres:
                block["ns"][cell] = max(1, round(block["ns"][cell] * math.exp(target[cell] - centres[cell])))


def change_processes(children: list[dict], how: str) -> None:
    """Within each experiment the numbers of cases change places, where their outcomes are of one shape: the case with
    the largest gets those of the one with the smallest; or each case gets those of all in turn. Texts stay: they say
    what ran."""
    groups = defaultdict(lambda: defaultdict(list))
    for child in children:
        case = json.dumps([child["interpreter"], child["factors"], child["fixed"], child["environment"]])
        groups[json.dumps([child["title"], child["run"], child["what"], shape(child["result"])])][case].append(child)
    for by_case in groups.values():
        cases = sorted(by_case.values(), key=lambda found: sum(size(child["result"]) for child in found) / len(found))
        outcomes = [[child["result"] for child in found] for found in cases]
        for number, found in enumerate(cases):
            for turn, child in enumerate(found):
                taken = len(cases) - 1 - number if how == INVERTED else (number + turn) % len(cases)
                child["result"] = with_numbers(child["result"], outcomes[taken][turn % len(outcomes[taken])])


def with_numbers(result, other):
    """A result with the numbers of another one of its shape, and its own texts."""
    if isinstance(result, dict):
        return {key: with_numbers(value, other[key]) for key, value in result.items()}
    if isinstance(result, list) and len(result) < LONG:
        return [with_numbers(*pair) for pair in zip(result, other)]
    return other if is_number(result) or (isinstance(result, list) and all(map(is_number, result))) else result


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shape(result) -> object:
    """What a result is made of, without its values."""
    if isinstance(result, dict):
        return {key: shape(value) for key, value in sorted(result.items())}
    if isinstance(result, list):
        return [shape(value) for value in result] if len(result) < LONG else ["long"]
    return "number" if is_number(result) else type(result).__name__


def size(result) -> float:
    """How large the numbers of a result are, on the whole."""
    if isinstance(result, dict):
        return sum(map(size, result.values()))
    if isinstance(result, list):
        return sum(map(size, result)) / max(1, len(result))
    return math.log1p(abs(result)) if is_number(result) else 0.0
