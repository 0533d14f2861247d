"""Made-up records of the chapter "GIL Balm", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.balm import experiment as e
from notebooks.balm.numbers import GROWN, OTHER_LAYOUT
from notebooks.balm.results import COPIED

INTERPRETERS = [GIL, FREE_THREADED]
# Of the logarithm of a time over processes, by way and number of threads. With them the ratios that claims read scatter as
# in a run of `quick`: new / pooled 0.05 and new / block 0.04 with one thread; pooled / new 0.15 and new / block 0.05 with 16;
# block with 16 threads over one 0.04.
PROCESSES = {
    (e.NEW, 1): 0.035,
    (e.POOLED + e.WRITTEN, 1): 0.03,
    (e.BLOCK + e.WRITTEN, 1): 0.025,
    (e.NEW, e.THREADS): 0.045,
    (e.POOLED + e.WRITTEN, e.THREADS): 0.15,
    (e.BLOCK + e.WRITTEN, e.THREADS): 0.04,
}
GAINS = (("B1", e.POOLED), ("B2", e.BLOCK))
# Of the logarithm of a ratio over restarts: 0.14 for the block in a run of `quick`, and 0.07 for pooled strings.
RESTARTS = 0.14
# ns for each string: where all ratios start from.
BASE = 100.0


def simulated(session: Simulated) -> None:
    session.add_times(
        "ways",
        {
            (GIL, e.NEW): BASE,
            (GIL, e.POOLED + e.RELEASED): BASE / session.true("B1", "new / pooled, one thread: {GIL}"),
            (GIL, e.BLOCK + e.RELEASED): BASE / session.true("B2", "new / block, one thread: {GIL}"),
        },
        RESTARTS,
    )
    session.add_processes("as the author ran it", as_the_author_ran_it(session))
    session.add_processes("arenas held and given back", in_both_states(session))
    session.add_processes("what works", [(label, {}, [answers()]) for label in INTERPRETERS])
    equal = [{"method": method, "text": "ASCII", "wrong": 0} for method in e.OURS]
    session.add_processes("layouts", [(label, {}, [equal]) for label in INTERPRETERS])
    # What is looked at once goes wrong, or it does not.
    misread, forged, died = (
        session.true("B6", name) > 0 for name in ("CPythons that misread a number without a NUL", OTHER_LAYOUT, GROWN)
    )
    without_nul = {"what": "no NUL at the end"}
    session.add_processes("what must not be done", [(label, without_nul, [misuse(misread)]) for label in INTERPRETERS])
    others = [
        (one, other, made)
        for one in INTERPRETERS
        for other in INTERPRETERS
        for made in (e.A_STRING, e.A_TUPLE)
        if one != other
    ]
    session.add_processes(
        "the layout of another build",
        [
            (one, {"made": made, "layout_of": other}, [{"wrong": "x == 'pi': False" if forged else ""}])
            for one, other, made in others
        ],
    )
    ended = "killed by SIGSEGV" if died else [{"asked": "x is now", "answer": "[]"}]
    acts = [(label, {"what": what}, [ended]) for label in INTERPRETERS for what in e.GROWS]
    session.add_processes("a list in memory of ours", acts)


def as_the_author_ran_it(session: Simulated) -> list[tuple[str, dict, list]]:
    """Each way with one thread and with 16, a value for each process."""
    block = BASE / session.true("B2", "new / block, one thread, apart: {GIL}")
    block_16 = block * session.true("B3", "block, 16 threads / one thread: {GIL}")
    new_16 = block_16 * session.true("B3", "new / block, 16 threads: {GIL}")
    ns = {
        (e.NEW, 1): BASE,
        (e.POOLED + e.WRITTEN, 1): BASE / session.true("B1", "new / pooled, one thread, apart: {GIL}"),
        (e.BLOCK + e.WRITTEN, 1): block,
        (e.NEW, e.THREADS): new_16,
        (e.POOLED + e.WRITTEN, e.THREADS): new_16 * session.true("B3", "pooled / new, 16 threads: {GIL}"),
        (e.BLOCK + e.WRITTEN, e.THREADS): block_16,
    }
    cases = []
    for (method, threads), one in ns.items():
        values = session.scattered(one, PROCESSES[method, threads], session.budget.shares)
        rows = [{"ns": float(value), "faults": 0.0} for value in values]
        cases.append((GIL, {"method": method, "threads": threads}, rows))
    return cases


def in_both_states(session: Simulated) -> list[tuple[str, dict, list]]:
    """One thread, with arenas held and given back, a value for each process."""
    held = {way: session.true(claim, f"new / {way}, one thread, arenas held: {{GIL}}") for claim, way in GAINS}
    given = session.true("B1", f"new / {e.POOLED}, one thread, arenas given back: {{GIL}}")
    ns = {(e.NEW, e.HELD): BASE, (e.NEW, e.GIVEN_BACK): BASE * given / held[e.POOLED]}
    ns |= {(way, e.HELD): BASE / gain for way, gain in held.items()}
    cases = []
    for (method, state), one in ns.items():
        values = session.scattered(one, PROCESSES[e.NEW, 1] / 2, session.budget.few)
        rows = [{"ns": float(value), "faults": 0.0} for value in values]
        cases.append((GIL, {"method": method, "arenas": state}, rows))
    return cases


def answers() -> list[dict]:
    """What one interpreter says of forgeries that are as they should be."""
    said = {"isinstance(x, str)": "True", "type(x) is str": "False"}
    return [
        {"probe": probe, "kind": kind, "answer": answer} for probe, answer in said.items() for kind in (*e.OURS, COPIED)
    ]


def misuse(misread: bool) -> list[dict]:
    """What one interpreter says of the first two characters of 1234, if it reads on, and if it does not."""
    number = "ValueError: no number" if misread else "12"
    return [{"asked": "x == '12'", "answer": "True"}, {"asked": "int(x)", "answer": number}]
