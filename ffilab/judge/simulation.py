"""Made-up sessions whose truth is known: what the rules of the ledger are tried on.

A chapter's `simulated.py` says how its records follow from the truth of its claims; what is here says what that truth is,
and writes records as a measurement does. Verdicts are then reached on the path of every real session.
"""

import importlib
import math

import numpy as np

from ffilab.judge.claims import declared, in_words
from ffilab.judge.groups import SESSION
from ffilab.judge.rules import Equal, Never, Occurs, Rule, Side, Size
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL

# What is true: by which part of the published effect.
TRUTHS = {"as published": 1.0, "half the size": 0.5, "no effect": 0.0, "the wrong sign": -1.0}
# A claim about a side only publishes no size: as many times the smallest effect of interest is taken for it.
ASSUMED = 5
# Of a side that may be missed by a margin, of an equality, and of an event that must not happen: by how many margins (or
# times the tolerated rate) each truth is off.
OFF = {"as published": 0.0, "half the size": 0.5, "no effect": 2.0, "the wrong sign": 4.0}
BLOCKS, LOOPS = 3, 1_000_000
# Standard deviation that a build adds to the logarithm of a ratio: the root mean square over the ratios of
# book/evidence/levels.json. What a session adds is groups.SESSION.
BUILD = 0.004
MACHINE = {
    "cpu": "a CPU", "cores": 2, "cores_usable": 2, "memory_gib": 4, "virtual_machine": None, "system": "Linux", "libc": "glibc",
    "compiler": "gcc", "commit": "c", "date": "2026-01-01T00:00:00", "governor": None, "load": 0.1, "steal_s": 0.0,
}  # fmt: skip
BUILT = {"version": f"{GIL}.7", "route": "source", "config_args": "", "stamp": "s"}
# Of a block or a process.
UNDISTURBED = {"strangers_s": 0.0, "throttled_s": 0.0, "steal_s": 0.0, "wall_s": 0.1}


def value(rules: list[Rule], truth: str) -> float:
    """What a number of a claim would be in truth, by the rules that speak of it.

    A published size: by the given part of its effect, on the scale of logarithms for a ratio (null 1). A rate for an event.
    """
    part = TRUTHS[truth]
    size = next((rule for rule in rules if isinstance(rule, Size)), None)
    rule = next((rule for rule in rules if not isinstance(rule, Size)), None)
    if size and size.null == 1 and size.published > 0:
        return math.exp(part * math.log(size.published))
    if size:
        return size.null + part * (size.published - size.null)
    if isinstance(rule, Side):
        sign = 1 if rule.direction == "above" else -1
        if rule.interest < 0:
            return rule.null + sign * OFF[truth] * rule.interest
        if rule.null == 1:
            return (1 + sign * rule.interest) ** (part * ASSUMED)
        return rule.null + sign * part * ASSUMED * rule.interest
    if isinstance(rule, Equal):
        return rule.null + OFF[truth] * rule.margin
    if isinstance(rule, Occurs):
        return max(0.0, part)
    if isinstance(rule, Never):
        return 0.0 if part > 0 else min(1.0, OFF[truth] * rule.rate)
    return 1.0


def timed(logs: dict, layouts=None, loops=LOOPS, plan="calls", builds=1, ns=1e3, **columns) -> Record:
    """The record of a timed plan. logs: by cell, or by arm on GIL, the logarithms of its times, in units of `ns`, shape (restarts,
    blocks). layouts: the number of each restart's; none, if there is one binary. columns: further ones of each block."""
    times = {key if "/" in key else f"{GIL}/{key}": ns * loops * np.exp(values) for key, values in logs.items()}
    labels, arms = (list(dict.fromkeys(key.partition("/")[part] for key in times)) for part in (0, 2))
    restarts, blocks = next(iter(times.values())).shape
    drawn = [None if layouts is None else int(layouts[number]) for number in range(restarts)]

    def layout(number: int | None) -> dict:
        described = {"number": number, "id": f"id{number}", "seed": number, "build": (number or 0) % builds + 1}
        return {"layout": number, "layouts": {} if number is None else dict.fromkeys(labels, described)}

    made = {"name": plan, "interpreters": labels, "blocks": blocks, "seed": 1, "budget": "quick"}
    return Record(
        None,
        {
            "plan": {**made, "arms": [{"name": arm} for arm in arms]},
            "machine": MACHINE,
            "interpreters": {label: BUILT for label in labels},
        },
        loops=dict.fromkeys(times, loops),
        restarts=[
            {"restart": number, "missing": {label: {} for label in labels}, **layout(which)}
            for number, which in enumerate(drawn)
        ],
        blocks=[
            {"restart": restart, "block": block, **UNDISTURBED, **columns}
            | {"ns": {key: float(found[restart, block]) for key, found in times.items()}}
            for restart in range(restarts)
            for block in range(blocks)
        ],
        end={"machine": {"load": 0.1, "steal_s": 0.0}},
    )


class Simulated(Session):
    """A session that nobody measured. Its methods write what a chapter's `simulated.py` makes up.

    noise: factor on all scatter; 0 for a run without any, which shows what the rules say in the long run.
    """

    def __init__(self, chapter: str, truth: str, interpreters: list[str], budget="full", seed=0, noise=1.0):
        plan = {"name": chapter, "session": "simulated", "seed": seed, "budget": budget, "interpreters": interpreters}
        run = {"plan": {**plan, "earlier": [], "blocks": 0}, "machine": MACHINE, "interpreters": {}, "layouts": {}}
        super().__init__(chapter, None, Record(None, run))
        self.truth, self.noise, self.rng = truth, noise, np.random.default_rng(seed)
        self._claims = {claim.id: claim for claim in declared(chapter).claims}

    @property
    def provenance(self) -> dict:
        """Nobody measured it."""
        return {"is_result": True, "minutes": None}

    @property
    def plans(self) -> list[str]:
        return sorted(self._timed)

    def true(self, claim: str, number: str) -> float:
        """What a claim's number is in truth. Raises ValueError if the claim has no such test."""
        rules = [rule for rule in self._claims[claim].tests if rule.number == in_words(number)]
        if not rules:
            raise ValueError(f"{claim} has no test {number!r}")
        return value(rules, self.truth)

    def scattered(self, centre: float, scatter: float, n: int) -> np.ndarray:
        """n values around a centre: log-normal for a positive one, with `scatter` as their relative standard deviation.

        Around 0 and below the scatter is an absolute one.
        """
        drawn = self.rng.normal(0, scatter * self.noise, n)
        return centre * np.exp(drawn) if centre > 0 else centre + drawn

    def events(self, rate: float, n: int) -> np.ndarray:
        """In which of n runs an event of this rate happens. Without noise: in their expected number, and at least once."""
        if self.noise:
            return self.rng.random(n) < rate
        return np.arange(n) < (max(1, round(rate * n)) if rate > 0 else 0)

    def add_times(self, plan: str, cells: dict[tuple[str, str], float], scatter: float) -> None:
        """A timed plan as the budget has it: its restarts with its layouts, linked from its builds, in one session.

        cells: ns of each (interpreter, arm); the empty loop comes with them. scatter: standard deviation over layouts of the
        logarithm of a ratio of two cells; BUILD and SESSION come on top of it.
        """
        for label in self.interpreters:
            cells.setdefault((label, EMPTY), 5.0)
        budget = self.budget
        layouts = np.arange(budget.restarts) % budget.layouts

        def drawn(sd: float, *shape: int) -> np.ndarray:
            """Of one cell: of a ratio the variance is that of two."""
            return self.rng.normal(0, sd * self.noise / math.sqrt(2), shape)

        logs = {}
        for (label, arm), centre in cells.items():
            of_layout, of_build = drawn(scatter, budget.layouts), drawn(BUILD, budget.builds)
            rows = of_layout[layouts] + of_build[layouts % budget.builds] + drawn(SESSION, 1)
            logs[f"{label}/{arm}"] = math.log(centre) + rows[:, None] + drawn(scatter / 3, budget.restarts, BLOCKS)
        self._timed[plan] = timed(logs, layouts, plan=plan, builds=budget.builds, ns=1.0)

    def add_processes(self, title: str, cases: list[tuple[str, dict, list]]) -> None:
        """An experiment in processes: for each case its interpreter, its factors, and what each of its processes brought (a
        row, or a list of rows; a text instead of a row: how it ended without one)."""
        named, number = {"title": title, "run": 1}, 0
        for interpreter, factors, results in cases:
            for round_, result in enumerate(results):
                child = {**named, "process": number, "round": round_, "interpreter": interpreter, "factors": factors}
                child |= UNDISTURBED
                failed = isinstance(result, str)
                child |= {"result": None, "ended": result} if failed else {"result": result, "ended": "ok"}
                self.record.children.append(child)
                number += 1
        self.record.experiments.append({**named, "processes": number})

    def add_observation(self, title: str, value, *arguments) -> None:
        """Something looked at once."""
        self.record.observations.append({"title": title, "arguments": list(arguments), "value": value})


def simulate(chapter: str, truth: str, budget: str = "full", seed: int = 0, noise: float = 1) -> Simulated:
    """A made-up session of a chapter: `simulated` of notebooks/<chapter>/simulated.py."""
    chapter_side = importlib.import_module(f"notebooks.{chapter}.simulated")
    session = Simulated(chapter, truth, chapter_side.INTERPRETERS, budget, seed, noise)
    chapter_side.simulated(session)
    return session
