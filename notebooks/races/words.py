"""The sentences of the chapter "Races" that a run chooses: each from the counts and intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". A Share counts runs: those in which something went wrong, among all.
"""

from ffilab.draw import NOT_MEASURED, capital, listed, number, text
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval, Share
from notebooks.races.detection import CLEAN, RACE
from notebooks.races.experiment import SHORT, THREADS

# The largest share of runs that "none so far" may leave open: that of the rules "never" in claims.toml.
RARE = 0.15


def _percent(share: float) -> str:
    """A share of losses, to two digits: the smallest are far below one in a hundred."""
    if share < 1e-4:
        return "less than 0.01 %"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _seen(share: Share, room: bool = False) -> str:
    """How often; room: and what "none" leaves room for, which one sentence of a section says."""
    if share.events:
        return f"{share.events} of {share.trials} runs"
    none = f"none of {share.trials} runs"
    return f"{none}, which leaves room for up to {_percent(share.at().high)} of all" if room else none


def _every(shares: dict[str, Share]) -> str:
    return "; ".join(f"{way} in {_seen(share)}" for way, share in shares.items())


def _told(said: str, difference: Interval, above: str, below: str) -> str:
    """A sentence, and which side of 0 its difference lies on."""
    if not difference.excludes(0):
        return f"{said}: no difference is told from this."
    return f"{said}: {above if difference.value > 0 else below}."


def as_run(free: Share, lost: Interval) -> str:
    """The talk's own counter without the GIL: processes of five rounds that lost updates, and the share of updates lost on average."""
    published = "in the talk all five rounds did, 36.3 % on average"
    if not free.events:
        return (
            f"Without the GIL, no round of the talk's own program lost an update on this machine: {_seen(free, room=True)}; "
            f"{published}."
        )
    return f"Without the GIL, the talk's own program lost updates in {_seen(free)} of five rounds, {_share(lost)} on average; {published}."


def gil_was_off(on: dict[str, Share]) -> str:
    """Processes of the talk's program in which something went wrong with the GIL: did the talk run without it?"""
    wrong = [f"{what} in {_seen(share)}" for what, share in on.items() if share.events]
    if wrong:
        return f"With the GIL something went wrong here all the same ({'; '.join(wrong)}): the talk's losses do not tell whether its GIL was off."
    least = min(on.values(), key=lambda share: share.trials)
    said = f"With the GIL nothing went wrong: {_seen(least, room=True)}"
    if not least.never(RARE):
        return f"{said}. That is too little to say by the talk's losses whether its GIL was off."
    return f"{said}. PyDLL keeps a GIL that is on, so that there would have been nothing to show: by its code, what the talk lost without the GIL was lost with the GIL off."


def lives(gil: Interval | None, free: Interval | None, more: Interval | None) -> str:
    """ns from the start of a thread that does nothing to its end, with and without the GIL, and the second less the first."""
    if gil is None or free is None or more is None:
        return "What a thread costs cannot be compared between the builds here."
    said = f"A thread that does nothing takes {text(free, 'µs', 1e-3)} from start to end without the GIL, and {text(gil, 'µs', 1e-3)} with it"
    return _told(
        said,
        more,
        f"{text(more, 'µs', 1e-3)} more",
        "the build without the GIL is not the dearer one",
    )


def start_and_call(start: Interval, call: Interval) -> str:
    """Does a thread get done before the next one begins? Both in ns."""
    both = f"to start a thread takes {text(start, 'µs', 1e-3)}, and one call, all that a thread has to do, {text(call, 'µs', 1e-3)}"
    if not (start.is_known and call.is_known) or not (call.high < start.low or call.low > start.high):
        return f"{capital(both)}: which takes longer cannot be told here."
    if call.high < start.low:
        return f"{capital(both)}: without a barrier one thread would be done before the next one begins."
    return f"{capital(both)}: the next thread begins while the one before is still at work, so they can meet without a barrier."


def meeting(checks: list[Check]) -> str:
    """The control: did threads meet where nothing keeps them apart?"""
    if not checks:
        return "Whether the threads met cannot be told: no such run was measured here."
    failed = [f"{check.what} ({check.found})" for check in checks if not check.passed]
    if not failed:
        return f"The threads met: {'; '.join(f'{check.what}, {check.found}' for check in checks)}."
    return (
        f"The threads did not meet often enough in {listed(failed)}. Who never met cannot have lost anything: that nothing "
        "was lost there says nothing."
    )


def met_and_worked(met: Share | None, worked: Share | None) -> str:
    """Runs of two threads of the unsafe counter where nothing keeps them apart: both inside together, and at work at once."""
    if met is None or worked is None:
        return "No run was measured here in which nothing kept the threads apart."
    return (
        f"Where nothing kept them apart, two threads of the unsafe counter were inside together in {_seen(met)}, and at work at once in "
        f"{_seen(worked)}."
    )


def kept_apart(met: Share) -> str:
    """Runs with the GIL kept in which all threads were inside at one time."""
    if met.events:
        return (
            f"Although the call kept the GIL, all threads were inside together in {_seen(met)}: look for what is wrong."
        )
    if met.never(RARE):
        return f"Where the call kept the GIL, all threads were inside together in {_seen(met, room=True)}."
    return f"There are too few runs with the GIL kept to say that threads do not meet: {_seen(met, room=True)}."


def protection(threads: int, kept: dict[str, Share], released: dict[str, Share]) -> str:
    """With the GIL: runs of the unsafe counter that lost updates, by way of calling."""
    said = f"With {threads} threads, calls that keep the GIL lost updates: {_every(kept)}. Calls that release it: {_every(released)}"
    if any(share.events for share in kept.values()):
        return f"{said}. The GIL did not protect the counter where it was kept: look for what is wrong."
    if not all(share.never(RARE) for share in kept.values()) or not all(share.events for share in released.values()):
        return f"{said}. Whether keeping the GIL makes the difference cannot be told from so few losses here."
    return f"{said}. So the GIL protected the counter where the call kept it, and only there."


def unprotected(threads: int, attached: dict[str, Share], detached: dict[str, Share]) -> str:
    """The same without the GIL, with the thread state attached and detached."""
    said = (
        f"With {threads} threads, attached calls lost updates: {_every(attached)}. Detached calls: {_every(detached)}"
    )
    if all(share.events for share in attached.values()):
        return f"{said}. To be attached excludes nobody there."
    if all(share.never(RARE) for share in attached.values()):
        return (
            f"{said}. No attached call was seen to lose anything here, which the matrix of the talk would call a race."
        )
    return f"{said}. Whether being attached protects anything cannot be told from this."


def lossy_runs(where: str, bad: Share, typical: tuple[float, float, float] | None) -> str:
    """Two threads: runs with any loss, and of those median, smallest and largest loss."""
    if typical is None:
        return f"{capital(where)}, two threads lost updates in {_seen(bad)}."
    median, least, most = typical
    spread = f"the median of those lost {_percent(median)} of all updates, the least {_percent(least)} and the most {_percent(most)}"
    clusters = "; the rest lost nothing at all" if bad.events < bad.trials else ""
    return f"{capital(where)}, two threads lost updates in {_seen(bad)}: {spread}{clusters}."


def overlap_decides(apart: Share, together: Share, anywhere: Share) -> str:
    """Runs of two threads with the talk's work and the GIL released that lost updates, among those in which the two did not
    work at once, and among those in which they did; anywhere: the first of them in all kinds of runs."""
    said = (
        f"Of {apart.trials} runs of two threads with {SHORT:,} increments each and the GIL released, in which the two did not work "
        f"at the same time, {apart.events} lost updates; of {together.trials} in which they did, {together.events}. Without any two "
        f"at work at once, {anywhere.events} of {anywhere.trials} runs of all kinds lost updates"
    )
    if apart.events or anywhere.events:
        return f"{said}. So there was a loss without an overlap that we noted, and overlap does not explain all of it."
    if together.events == together.trials:
        return f"{said}. Two calls of which one ends before the other begins cannot lose; here all that overlapped did."
    return f"{said}. Two calls of which one ends before the other begins cannot lose; not all that overlapped did."


# Of two builds, with the GIL released and without it, and the first less the second.
Compared = tuple[Interval | None, Interval | None, Interval | None]


def _times(ratio: float, more: str, less: str) -> str:
    """A factor above one, and which way."""
    factor = max(ratio, 1 / ratio)
    return f"{factor:,.{0 if factor >= 9.95 else 1}f} times {more if ratio > 1 else less}"


def factor_between_builds(loss: Compared, pairs: Compared, each: Compared, apart: Share) -> str:
    """Why fifty threads with the talk's work lose more on one build than on the other, as far as this run shows: expected loss,
    pairs at work at once, and loss of each such pair. apart: runs of all kinds without any two at work at once."""
    if None in (*loss, *pairs, *each) or min(found.value for found in (*loss[:2], *pairs[:2], *each[:2])) <= 0:
        return "The factor between the builds cannot be explained here: too little was measured."
    lost = f"{THREADS} threads with the talk's work lose {_share(loss[0])} with the GIL released, and {_share(loss[1])} without the GIL"
    if not loss[2].excludes(0):
        return f"{lost}: no difference is told from this, so there is no factor to explain."
    ratio, of_pairs, of_each = (gil.value / free.value for gil, free, _ in (loss, pairs, each))
    said = (
        f"{lost}. {_times(of_pairs, 'as many', 'fewer')} overlapping pairs, each losing "
        f"{_times(of_each, 'more', 'less')}{'' if each[2].excludes(0) else ' (which is not told from none)'}, give "
        f"{_times(ratio, 'the loss', 'less loss')}"
    )
    if apart.events:
        return f"{said}. Overlap does not explain all of it, as there were losses without an overlap that we noted."
    if not pairs[2].excludes(0) or (pairs[2].value > 0) != (loss[2].value > 0):
        return f"{said}. The number of pairs does not explain it: that is not seen to differ the same way."
    return f"{said}. So there are more losses where more pairs overlap; these factors have no intervals."


def certain(kept: list[Share], released: list[Share]) -> str:
    """The matrix's cell "unsafe, with the GIL", by way of calling and kind of run."""
    if any(share.events for share in kept):
        return "Uncertain it stays: updates were lost here even where the call kept the GIL."
    if all(share.never(RARE) for share in kept) and any(share.events for share in released):
        return "Here the uncertain cell falls into two, as the talk's slide says: no loss seen where the call keeps the GIL, and losses where it releases it."
    return "Whether the uncertain cell falls into two cannot be told here."


def bank_asleep(free: Share, gil: Share, dollars: Interval | None) -> str:
    """The account with a sleep between check and act, through PyDLL: runs in which money was made, without and with the GIL."""
    made = f", {text(dollars, 'dollars')} from nothing on average" if dollars and free.events else ""
    return (
        f"With the sleep, through PyDLL, the account was inconsistent in {_seen(free)} without the GIL{made}; with the GIL, in "
        f"{_seen(gil, room=True)}."
    )


def bank_as_run(free: Share, paid: Interval) -> str:
    """The talk's own bank without the GIL: processes with an account that was inconsistent, and withdrawals on average."""
    said = f"Without the GIL, the talk's own bank was inconsistent in {_seen(free, room=True)}; it paid {text(paid)} withdrawals, where the account holds 20"
    if not free.events:
        return f"{said}. In the talk it paid 300, all that were asked for."
    return f"{said} and the talk saw 300, all that were asked for."


def fast_bank(free: Share, raced: Interval) -> str:
    """The talk's own fast bank without the GIL: processes with a race in any of five rounds, and the share of rounds with one."""
    low, high = (100 * bound for bound in (Share(2, 5).at().low, Share(2, 5).at().high))
    published = f"in the talk two of five rounds raced, which is any share from {low:.0f} to {high:.0f} %"
    if not free.events:
        return (
            f"The talk's own fast bank did not race here: {_seen(free, room=True)}, of five rounds each; {published}."
        )
    return f"The talk's own fast bank raced in {_share(raced)} of the rounds here, in {_seen(free)}; {published}."


def atomic_bank(found: dict[str, Share]) -> str:
    """The account of atomic loads and stores, by "loader on build"."""
    over = [f"{name} in {_seen(share)}" for name, share in found.items() if share.events]
    if over:
        return f"The account of atomic loads and stores was inconsistent: {'; '.join(over)}."
    if all(share.never(RARE) for share in found.values()):
        return f"The account of atomic loads and stores was consistent in all {sum(s.trials for s in found.values())} runs here."
    return "The account of atomic loads and stores was not seen to be inconsistent here, in too few runs to tell."


def no_window(zero: Interval) -> str:
    """Share of rounds with two payments, with a window of no width."""
    if not zero.is_known:
        return "What a window of no width lets through is not known here."
    if zero.low > 0:
        return f"A window of no width lets {text(zero, '%', 100)} of the rounds through: check and act are never one instruction."
    if zero.high <= 0:
        return "With a window of no width, no round was paid twice."
    return (
        f"Whether a window of no width lets anything through cannot be told here: {text(zero, '%', 100)} of the rounds."
    )


def model_of_window(windows: int, missed: dict[str, list[float]], own_ns: Interval, nearer: int) -> str:
    """At which windows each model lies outside of the measured interval; own_ns: what check and act take themselves. nearer: at
    how many of the windows above zero the second model is nearer to what was measured than the first one."""
    if not own_ns.is_known:
        return "The model cannot be compared with what was measured here."
    outside, with_check = missed["window"], missed["with check"]
    own = f"Check and act take {text(own_ns, 'ns')} themselves, by the window of no width"
    closer = f"It is the nearer one at {nearer} of {windows - 1} windows above zero"
    if not outside:
        return f"The model that knows the window alone lies within all {windows} intervals, which hold together."
    said = (
        f"The model that knows the window alone lies outside of the interval at {_widths(outside)}, of {windows} windows "
        "(the intervals hold together)"
    )
    if own_ns.high <= 0:
        return f"{said}. The window of no width gives check and act no time of their own, so there is nothing to add."
    if with_check:
        return f"{said}. {own}. With the middle of that added, the model still lies outside at {_widths(with_check)}: more may be at work than it knows. {closer}."
    return f"{said}. {own}. With the middle of that added, the model lies within the intervals of all other windows. {closer}."


def _widths(windows: list[float]) -> str:
    return listed([f"{window / 1000:g} µs" for window in windows])


def python_with_gil(add: Share, call: Share) -> str:
    """Runs of Python statements that lost updates, with the GIL at a switch interval of 1 µs."""
    said = f"With the GIL, at 1 µs, total += 1 lost updates in {_seen(add, room=True)}, and total += one() in {_seen(call)}"
    if not add.events and call.events:
        return f"{said}. The runs agree with the instructions: a place in the middle in one statement, and none in the other."
    if add.events:
        return f"{said}. So this interpreter hands over the GIL where the table of instructions shows no place for it."
    return f"{said}. Nothing was lost either way, and the instructions alone tell the two apart."


def python_without_gil(add: Share, call: Share) -> str:
    """The same without the GIL."""
    said = f"Without the GIL, total += 1 lost updates in {_seen(add)}, and total += one() in {_seen(call)}"
    if add.events or call.events:
        return f"{said}. The interpreter stays sound, since every object is protected. Your arithmetic is not."
    return f"{said}. That is no promise: nothing keeps the two threads apart."


def last_error(attached: Share) -> str:
    """Runs with a wrong answer of the global error, through PyDLL with the GIL."""
    if attached.events:
        return f"Through PyDLL with the GIL, the wrong reason came back in {_seen(attached)}: the GIL protects a call, and not a pair."
    if attached.never(RARE):
        return f"Through PyDLL with the GIL, the wrong reason came back in {_seen(attached, room=True)}: no switch was seen between the two."
    return f"Through PyDLL with the GIL, the wrong reason came back in {_seen(attached, room=True)}: too few runs to say more."


def sharing(shared: Interval | None, own: Interval | None) -> str:
    """One increment every so many ns, by two threads together: of one shared atomic number, and of one of sixteen."""
    return _dearer(
        "an atomic increment of one shared number",
        shared,
        "one of a number among sixteen, each thread at its own",
        own,
    )


def reading(locked: Interval | None, snapshot: Interval | None) -> str:
    """One read every so many ns, by two threads together: under a lock, and of an immutable snapshot."""
    return _dearer("a read under a PyMutex", locked, "one of an immutable snapshot", snapshot)


def _dearer(one: str, dear: Interval | None, other: str, cheap: Interval | None) -> str:
    if dear is None or cheap is None:
        return f"{capital(one)} and {other} are not compared here: one of them is missing."
    said = f"two threads together get {one} done every {text(dear, 'ns')}, and {other} every {text(cheap, 'ns')}"
    if not (dear.is_known and cheap.is_known) or not (dear.low > cheap.high or dear.high < cheap.low):
        return f"{capital(said)}: which is cheaper cannot be told here."
    return f"{capital(said)}: the {'second' if dear.low > cheap.high else 'first'} is the cheaper one."


def tools(said: dict[str, dict[str, int]]) -> str:
    """By tool: how many variants it judged right, missed, and called a race that is none."""
    if not any(sum(found.values()) for found in said.values()):
        return "Neither tool could run here, so nobody looked at the order of accesses."
    parts = []
    for tool, found in said.items():
        if not sum(found.values()):
            parts.append(f"{tool} could not run here")
            continue
        wrong = "".join(f", {what}: {found[what]}" for what in ("missed", "false alarms") if found[what])
        parts.append(f"{tool} was right on {found['right']} of {sum(found.values())}{wrong}")
    return f"Of the variants: {'; '.join(parts)}."


def atomic_bank_under_tools(said: dict[str, str]) -> str:
    """What each tool said of the bank of atomic loads and stores, which pays out too much without a data race."""
    clean = [tool for tool, found in said.items() if found == CLEAN]
    alarmed = [tool for tool, found in said.items() if found == RACE]
    if clean and not alarmed:
        return f"The bank of atomic loads and stores is clean for {listed(clean)}, and pays out too much all the same."
    if alarmed:
        return f"On the bank of atomic loads and stores, {listed(alarmed)} reported a data race, where there is none."
    return "No tool could look at the bank of atomic loads and stores here."


def rust(load_then_store: Share | None, fetch_add: Share | None) -> str:
    """Runs in which the counters in Rust lost updates."""
    if load_then_store is None or fetch_add is None:
        return f"The counters in Rust were {NOT_MEASURED}."
    said = f"Called from two threads, load then store lost updates in {_seen(load_then_store)}, and fetch_add in {_seen(fetch_add, room=True)}"
    if fetch_add.events:
        return f"{said}. The second must not happen: look for what is wrong."
    if load_then_store.events:
        return f"{said}. Each access was atomic in both."
    return f"{said}. That shows no difference between them here; loom, below, does not depend on luck."


def prediction_1(free: Share) -> str:
    """The talk's own counter without the GIL, five rounds a process."""
    if not free.events:
        return f"Behind a barrier in Python, none of {free.trials} runs lost anything here, in five rounds each. With threads that meet, read on."
    which = f"all {free.trials}" if free.events == free.trials else f"{free.events} of {free.trials}"
    return f"Behind a barrier in Python, {which} runs lost something here, in five rounds each. With threads that meet, read on."


def prediction_2(two: Share, fifty: Share) -> str:
    """CDLL in the build with the GIL: threads that meet."""
    said = f"Updates were lost by two threads that meet in {_seen(two)}; by fifty, in {_seen(fifty)}"
    if two.events or fifty.events:
        return f"It is not exact. {said}."
    if two.never(RARE) and fifty.never(RARE):
        return f"No loss was seen here, and nothing promises that. {said}."
    return f"Too few runs to tell. {said}."


def prediction_3(add: Share) -> str:
    """`total += 1` with the GIL at 1 µs."""
    if add.events:
        return f"It is not exact here: updates were lost in {_seen(add)}."
    if add.never(RARE):
        return f"No loss was seen: {_seen(add)}. The instructions above say why, and no promise does."
    return f"No loss was seen, in too few runs to say more: {_seen(add)}."


def prediction_4(found: dict[str, Share]) -> str:
    """The bank of atomic loads and stores."""
    if any(share.events for share in found.values()):
        return f"Yes. {atomic_bank(found)}"
    return f"It can, by its code, and this run did not show it. {atomic_bank(found)}"


def takeaway(kept: list[Share], released: list[Share]) -> str:
    """When the GIL protects a C global."""
    return f"A GIL protects a C global only inside of calls that keep it, and only one call at a time. {certain(kept, released)}"


def left_open(threads: int, runs: Share, unsafe: Share) -> str:
    """What a run without a loss leaves open: runs of a safe counter with so many threads, without the GIL by any way, and of the
    unsafe one in the same processes."""
    if runs.events:
        return f"A counter that is called safe lost updates here, in {_seen(runs)}: something is wrong with it, or with this machine."
    said = f"With {threads} threads, without the GIL, the safe counters lost updates in {_seen(runs, room=True)}"
    if unsafe.events:
        return (
            f"{said}. The same processes could show a loss: the unsafe counter in them lost updates in {_seen(unsafe)}."
        )
    return f"{said}. The unsafe counter beside them lost none either, so that this run could not have shown a loss."


def _share(found: Interval) -> str:
    """A share that cannot be negative, in per cent."""
    return text(
        Interval(found.value, max(0.0, found.low) if found.low < found.value else found.low, found.high), "%", 100
    )


def overlap_for_alt(rows: list[tuple[str, int, int, float, float]]) -> str:
    """The picture of loss against overlap: (build, threads, increments, expected loss, median overlapped time)."""
    return "; ".join(
        f"{label}, {threads} threads with {iterations:,}: loss {number(100 * loss, 1)} %, overlapped {number(100 * overlapped, 1)} %"
        for label, threads, iterations, loss, overlapped in rows
    )
