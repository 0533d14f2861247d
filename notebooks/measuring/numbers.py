"""The numbers of the chapter "Measuring on a noisy machine", by name, and its own controls. The rules: claims.toml,
sentences.toml."""

import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import LEVEL, Counted, Interval, Share, ShareDifference
from ffilab.judge.numbers import Makers
from ffilab.judge.questions import OPEN, above
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from notebooks.measuring import results
from notebooks.measuring.experiment import BINDINGS, COLLECTED, ITSELF, TALK

SEPARATED = "share of processes in which all six pairs of the four bindings are called different"
CTYPES, CFFI = BINDINGS[:2]


def numbers(session: Session) -> Makers:
    made: Makers = {"level of the book": lambda: Counted(LEVEL)}

    def of(source, name: str, make, *arguments) -> None:
        """A number that is made of a part of the session, which is read once."""
        made[name] = lambda: make(session.once(source), *arguments)

    of(clock, "difference of two readings of the clock, in ns", lambda found: Counted(found["step"]))
    of(clock, "time of an empty sample, in ns", lambda found: Counted(found["empty sample"]))
    for which in ("different", "alike"):
        of(first_process, f"pairs that the first process calls {which}", called, which)
    of(first_process, "pairs of the first process", lambda pairs: Counted(len(pairs)))
    of(bindings, SEPARATED, results.all_separated)
    of(bindings, "processes that call ctypes faster than cffi", faster, CTYPES)
    of(bindings, "processes that call cffi faster than ctypes", faster, CFFI)
    named = "share of ctypes, where ctypes or cffi is called the faster one"
    of(bindings, named, lambda found: faster(found[found.faster.isin((CTYPES, CFFI))], CTYPES))
    of(copies, "share of A/A pairs that the talk's method calls significant", results.share_significant)
    of(copies, "share of significant A/A pairs that are hardly apart", results.tiny)
    for share in (0.95, LEVEL):
        name = f"how far {share:.0%} of the A/A pairs lie apart at most"
        of(copies, name, lambda pairs, share: Counted(results.yardstick(pairs)[share]), share)
    for which in ("measured", "loaded"):
        name = f"share of significant A/A pairs, the copy {which} first is slower"
        of(copies, name, lambda pairs, which: results.leaning(pairs).get(which), which)
    for number in (1, 2, 3):
        of(steps, f"share of false alarms in step {number}", dict.get, number)
        for before in range(1, number):
            of(steps, f"share of false alarms in step {before} less that in step {number}", fallen, before, number)
    of(record, "spread of restarted processes over that of a kept one", results.restarted_over_kept)
    of(record, "restarts of the copies", lambda found: Counted(results.restart_medians(found).restart.nunique()))
    for over in ("blocks", "restarts"):
        of(widths, f"half-width over {over}", lambda found, over: Counted(found[0][over]), over)
    of(widths, "half-width over restarts, of blocks dealt out by chance", lambda found: found[1])
    name = "half-width over restarts / of blocks dealt out by chance"
    of(widths, name, lambda found: Counted(found[0]["restarts"] / found[1].value) if found[1].value else None)
    of(record, "share of the work with company on the core", lambda found: Counted(results.company(found)))
    of(record, "CDLL / PyDLL with company / without", results.moved_by_company)
    of(record, "layouts that were drawn", drawn)
    of(record, "intervals of one layout without the mean of all", alone, False)
    of(record, "intervals of one layout with the mean of all", alone, True)
    of(record, "CDLL / PyDLL in the next build", lambda found: results.loaders_compared(found).estimate.next_build)
    of(record, "what a layout adds to CDLL / PyDLL", added, "CDLL / PyDLL", results.LAYOUT)
    for pair in ("CDLL / PyDLL", "a call / itself"):
        of(record, f"scatter within a layout of {pair}", added, pair, results.BELOW)
    for what in COLLECTED:
        name = f"time of {what}, collector on / off"
        of(record, name, lambda found, what: results.collector_compared(found)[what], what)
    of(record, "pairs of copies", lambda found: Counted(len(results.copies_compared(found))))
    of(record, "pairs of copies that certainly differ", alarms)
    of(record, "CDLL / PyDLL in the run of the copies", lambda found: results.loaders_compared(found).estimate)
    made["instructions of CDLL / PyDLL"] = lambda: results.instruction_ratio(session.observed("instructions"))
    return made


def controls(session: Session) -> list[Control]:
    """Are the copies of one call alike? D7 rests on the same run."""
    return [
        Control("A/A of copies", f"{pair.slow[1]} / {pair.fast[1]} on {pair.slow[0]}", "copies", pair.estimate)
        for pair in results.copies_compared(session.timed("copies"))
    ]


def clock(session: Session) -> dict[str, float]:
    return results.clock(session.frame(TALK))


def first_process(session: Session) -> pd.DataFrame:
    """The talk's test of the pairs of one process."""
    return results.talk_tables(session.frame(TALK))[1]


def bindings(session: Session) -> pd.DataFrame:
    return results.of_bindings(session.frame(TALK))


def copies(session: Session) -> pd.DataFrame:
    return results.pairs(session.frame(ITSELF))


def steps(session: Session) -> dict[int, Share]:
    in_one, restarts = (session.frame(f"a benchmark{how}") for how in (" of one process", ", restarted"))
    return results.false_alarms(results.benchmarks(in_one, restarts))


def record(session: Session) -> Record:
    return session.timed("copies")


def widths(session: Session) -> tuple[dict[str, float], Interval]:
    return results.pseudo_replication(session.timed("copies"))


def called(pairs: pd.DataFrame, which: str) -> Counted:
    different = int((pairs["BH p"] < results.TALK_LEVEL).sum())
    return Counted(different if which == "different" else len(pairs) - different)


def faster(found: pd.DataFrame, name: str) -> Share | None:
    named = found[found.pair == f"{CTYPES} vs {CFFI}"].faster
    return Share(int((named == name).sum()), len(named)) if len(named) else None


def fallen(shares: dict[int, Share], before: int, after: int) -> ShareDifference | None:
    if not {before, after} <= set(shares):
        return None
    one, other = shares[before], shares[after]
    return ShareDifference(one.events, one.trials, other.events, other.trials)


def drawn(found: Record) -> Counted | None:
    layouts = {unit.layout for unit in found.kept} - {None}
    return Counted(len(layouts)) if layouts else None


def alone(found: Record, hold: bool) -> Share | None:
    """Of layouts that had enough restarts for an interval of their own, if there are enough of these: those that hold
    the mean over all layouts, or do not."""
    each = results.by_layout(found)
    if each.empty or results.levels_and_zero(found).empty:
        return None
    mean = results.loaders_compared(found).ratio.value
    holding = sum(one.is_known and above(one, mean) == OPEN for one in map(Interval.of, each.itertuples()))
    return Share(holding if hold else len(each) - holding, len(each))


def added(found: Record, pair: str, level: str) -> Interval | None:
    """Only where single layouts have intervals."""
    rows = results.levels_and_zero(found)
    rows = rows[(rows.pair == pair) & (rows.level == level)]
    return None if rows.empty or results.by_layout(found).empty else Interval.of(rows.iloc[0])


def alarms(found: Record) -> Counted | None:
    among = results.alarms_among(results.copies_compared(found))
    return None if among is None else Counted(among)
