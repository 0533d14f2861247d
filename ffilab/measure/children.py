"""Processes of an experiment as rows of a table: which of them count, and what each brought."""

import json
import math
from collections import Counter

from ffilab.measure import neighbour, noise

# An interval takes so many (`estimates.MIN_VALUES`).
LEAST = 3
# Columns that say how a process went.
HOW = ("process", "round", "ended")


def rows_of(child: dict) -> list[dict]:
    """The rows of one process. Raises ValueError if a value has the name of a factor, or of what else is a column."""
    what = {"interpreter": child["interpreter"], **child["factors"]}
    how = {key: child[key] for key in HOW}
    rows = []
    for result in child["result"] if isinstance(child["result"], list) else [child["result"] or {}]:
        values = flat(result)
        if twice := set(values) & {*what, *how}:
            raise ValueError(f"{child['title']}: a result has a value of the name {', '.join(twice)}, which is taken")
        rows.append({**what, **values, **how})
    return rows


def flat(result: dict, above: str = "") -> dict:
    """A nested dictionary as one of depth one: {"a": {"b": 1}} becomes {"a.b": 1}."""
    flattened = {}
    for key, value in result.items():
        flattened |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flattened


def with_company(children: list[dict]) -> list[dict]:
    """Processes of one experiment, in the order of running, each with `company`: the share of its time in which its
    cores had a neighbour."""
    shares = neighbour.of_processes(
        [case_of(child) for child in children], [child.get("cores", {}) for child in children]
    )
    return [{**child, "company": share} for child, share in zip(children, shares)]


def by_place(children: list[dict]) -> list[list[dict]]:
    """Processes by the place in their experiment, in the order of running: the planned one, then what was measured in
    its place."""
    places: dict[int, list[dict]] = {}
    for child in children:
        places.setdefault(child.get("replaces", child["process"]), []).append(child)
    return list(places.values())


def mostly_lost(places: list[list[dict]]) -> set[str]:
    """The cases of which no process may be left out: those of which more than half would be; all, if that is more than
    half of all processes."""
    lost = [case_of(tries[0]) for tries in places if all(map(noise.disturbed, tries))]
    if not lost:
        return set()
    planned, of_case = Counter(case_of(tries[0]) for tries in places), Counter(lost)
    return {case for case, count in planned.items() if 2 * of_case[case] > count or 2 * len(lost) > len(places)}


def chosen(places: list[list[dict]], whole: set[str]) -> list[dict]:
    """Of each place the process that was not disturbed, under the number of the planned one.

    Where there is none, nothing; but of a case that is kept `whole` the one that had least company. If it was a
    neighbour that disturbed it, the quietest ones of its case stay: as many as an interval takes, and half of a whole
    case.
    """
    limits, kept = limits_of(places, whole), []
    for tries in places:
        clean, best = [line for line in tries if not noise.disturbed(line)], min(tries, key=company_of)
        case, by_neighbour = case_of(best), noise.disturbed(best) == noise.NEIGHBOUR
        if clean or (company_of(best) <= limits[case] if by_neighbour else case in whole):
            kept.append({**(clean or [best])[0], "process": tries[0]["process"]})
    return kept


def limits_of(places: list[list[dict]], whole: set[str]) -> dict[str, float]:
    """How much company the processes of each case may have had that stay though a neighbour disturbed them."""
    by_case: dict[str, list[float]] = {}
    for tries in places:
        least = min(tries, key=company_of)
        clean = any(not noise.disturbed(line) for line in tries)
        by_case.setdefault(case_of(least), []).append(0.0 if clean else company_of(least))
    limits = {}
    for case, company in by_case.items():
        # At least so many stay; where most was disturbed, the quieter half.
        kept = max(LEAST, math.ceil(len(company) / 2)) if case in whole else LEAST
        limits[case] = sorted(company)[min(kept, len(company)) - 1]
    return limits


def company_of(child: dict) -> float:
    """The share of a process's time in which its cores had a neighbour; 0 where that is not known."""
    return child.get("company", 0.0)


def case_of(child: dict) -> str:
    """What a process is one of: its interpreter and its factors."""
    return json.dumps([child["interpreter"], child["factors"]], sort_keys=True, default=str)
