"""The sentences of the chapter "Races" that a run chooses: each from the counts and intervals that the verdicts use.

`where` is "with the GIL" or "without the GIL". A Share counts runs: those in which something went wrong, among all.
"""

from scipy import stats

from ffilab.draw import NOT_MEASURED, capital, listed, number, text
from ffilab.judge.controls import Check
from ffilab.judge.estimates import LEVEL, Interval, Share
from notebooks.races.detection import CLEAN, RACE
from notebooks.races.experiment import LONG, SHORT, THREADS

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


def as_run(pydll: Share, others: dict[str, Share]) -> str:
    """Did the talk's counter, without its barrier, lose updates: without the GIL through PyDLL, and in the other rows of the table?"""
    if pydll.events == pydll.trials:
        said = f"The talk's counter, without its barrier, lost updates here, as in the talk, in all {pydll.trials} runs"
    elif pydll.events:
        said = f"The talk's counter, without its barrier, lost updates here in {_seen(pydll)}; in the talk, in five of five"
    else:
        said = (
            f"The talk's counter, without its barrier, did not show the loss on this machine: none of {pydll.trials} runs lost anything, which "
            f"leaves room for up to {_percent(pydll.at().high)} of all; in the talk updates were lost in five of five"
        )
    lossy = [f"{name} ({_seen(share)})" for name, share in others.items() if share.events]
    beside = f" Other rows of the table did lose updates: {listed(lossy)}." if lossy else ""
    return f"{said} (PyDLL, without the GIL).{beside}"


def start_and_call(start: Interval, call: Interval) -> str:
    """Does a thread get done before the next one begins? Both in ns."""
    both = f"to start a thread takes {text(start, 'µs', 1e-3)}, and one call, all that a thread has to do, {text(call, 'µs', 1e-3)}"
    if not (start.is_known and call.is_known) or not (call.high < start.low or call.low > start.high):
        return f"{capital(both)}: which takes longer cannot be told here."
    if call.high < start.low:
        return f"{capital(both)}: one thread can be done before the next one begins, and then they do not meet."
    return f"{capital(both)}: the next thread begins while the one before is still at work, so they can meet."


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
    divided = [[share.events, share.trials - share.events] for share in (apart, together)]
    if stats.fisher_exact(divided).pvalue < 1 - LEVEL:
        return f"{said}. No overlap, no loss: chance alone divides runs like that less often than once in fifty (Fisher's exact test)."
    return f"{said}. Too few of one kind, to say what overlap has to do with it."


def by_size(where: str, two: Interval | None, fifty: Interval | None, less: Interval | None) -> str:
    """Expected loss of two and of fifty threads with the talk's number of increments, and the difference of the two."""
    if less is None or two is None or fifty is None:
        return f"{capital(where)}, two and {THREADS} threads cannot be compared here."
    said = (
        f"{capital(where)}, with {SHORT:,} increments each, two threads lose {_share(two)} on average, and {THREADS} threads "
        f"{_share(fifty)}"
    )
    return _told(said, less, f"{THREADS} threads lose less", f"{THREADS} threads lose more")


def pairs_at_once(gil: Interval | None, free: Interval | None, more: Interval | None) -> str:
    """Of fifty threads with little work, how many pairs worked at once in a run, on average: with the GIL released, without the
    GIL, and the first less the second."""
    if gil is None or free is None or more is None:
        return f"How many pairs of {THREADS} threads were at work at once cannot be compared between the builds here."
    said = (
        f"Of the {THREADS * (THREADS - 1) // 2:,} pairs of {THREADS} threads with {SHORT:,} increments each, {text(gil)} were at work "
        f"at once in a run with the GIL released, and {text(free)} without the GIL"
    )
    return _told(said, more, "more with the GIL released", "fewer with the GIL released")


def loss_of_a_pair(gil: Interval | None, free: Interval | None, more: Interval | None) -> str:
    """Share of its own updates that a pair at work at once loses, if the others lose nothing: as `pairs_at_once`."""
    if gil is None or free is None or more is None:
        return "What one pair at work at once loses cannot be compared between the builds here."
    said = (
        f"Shared out among the pairs at work at once, each such pair lost {_share(gil)} of its own updates with the GIL released, and "
        f"{_share(free)} without the GIL"
    )
    return _told(said, more, "more with the GIL released", "less with the GIL released")


def by_work(where: str, short: Interval | None, long: Interval | None, more: Interval | None) -> str:
    """Expected loss of fifty threads with little and with much work, and the difference of the two."""
    if more is None or short is None or long is None:
        return f"{capital(where)}, short and long work cannot be compared here."
    said = f"{capital(where)}, {THREADS} threads lose {_share(short)} with {SHORT:,} increments each, and {_share(long)} with {LONG:,}"
    longer = "the longer the work, the"
    return _told(said, more, f"{longer} larger the share that is lost", f"{longer} smaller the share that is lost")


def by_build(rows: dict[str, tuple[Interval | None, Interval | None, Interval | None]]) -> str:
    """By team: expected loss with the GIL released, without the GIL, and the first less the second. All through the same call."""
    told = {name: found for name, found in rows.items() if found[2] is not None}
    apart = {name: found for name, found in told.items() if found[2].excludes(0)}
    if not told:
        return "The builds cannot be compared here."
    if not apart:
        return (
            f"Between the builds, no difference is told in any of {len(told)} teams of equal size and work: the same call, "
            "detached, loses alike as far as this run shows."
        )
    each = [
        f"{name}, {_share(gil)} with the GIL released and {_share(free)} without the GIL"
        for name, (gil, free, _) in apart.items()
    ]
    return (
        f"Between the builds, a difference is told in {len(apart)} of {len(told)} teams of equal size and work (the intervals "
        f"hold together): {'; '.join(each)}."
    )


def switched_out(where: str, others: Interval | None, switched: Interval | None, runs: int, of: int) -> str:
    """Fifty threads with the talk's work: expected loss of the runs in which no thread lost its core while it worked, and of
    those in which one did, which are `runs` of all."""
    said = f"{capital(where)}, {runs} of {of} runs of {THREADS} threads with {SHORT:,} increments each had a thread that lost its core while it worked"
    if others is None and switched is None:
        return f"{capital(where)}, no run of {THREADS} threads with {SHORT:,} increments each was measured here."
    if switched is None:
        return f"{said}: the mean loss is not made by such runs."
    if others is None:
        return f"{said}: what the others lose is not known here."
    return f"{said}; these lost {_share(switched)} on average, and the others {_share(others)}."


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
    if not loss[2].excludes(0):
        return f"With {THREADS} threads and the talk's work, no difference between the builds is told here, so there is no factor to explain."
    ratio, of_pairs, of_each = (gil.value / free.value for gil, free, _ in (loss, pairs, each))
    said = (
        f"With {THREADS} threads and the talk's work, the mean loss is {_times(ratio, 'larger', 'smaller')} with the GIL released "
        f"than without it. There are {_times(of_pairs, 'more', 'fewer')} pairs at work at once, and the mean loss of one is "
        f"{_times(of_each, 'larger', 'smaller')}{'' if each[2].excludes(0) else ', which is not told from none'}; both together make "
        f"the loss {_times(of_pairs * of_each, 'larger', 'smaller')}"
    )
    if apart.events:
        return f"{said}. Overlap does not explain all of it, as there were losses without an overlap that we noted."
    if not pairs[2].excludes(0) or (pairs[2].value > 0) != (loss[2].value > 0):
        return f"{said}. The number of pairs does not explain it: that is not seen to differ the same way."
    if not each[2].excludes(0):
        return f"{said}. So the number of pairs explains it, as far as this run shows."
    adds = "adds to it" if (each[2].value > 0) == (loss[2].value > 0) else "takes from it"
    return f"{said}. So the number of pairs makes the factor, and what each of them loses {adds}."


def certain(kept: list[Share], released: list[Share]) -> str:
    """The matrix's cell "unsafe, with the GIL", by way of calling and kind of run."""
    if any(share.events for share in kept):
        return "Uncertain it stays: updates were lost here even where the call kept the GIL."
    if all(share.never(RARE) for share in kept) and any(share.events for share in released):
        return "Here the uncertain cell falls into two: no loss seen where the call keeps the GIL, and losses where it releases it."
    return "Whether the uncertain cell falls into two cannot be told here."


def bank_asleep(free: Share, gil: Share, dollars: Interval | None) -> str:
    """The account with a sleep between check and act, through PyDLL: runs in which money was made, without and with the GIL."""
    made = f", {text(dollars, 'dollars')} from nothing on average" if dollars and free.events else ""
    return (
        f"With the sleep, through PyDLL, the account was inconsistent in {_seen(free)} without the GIL{made}; with the GIL, in "
        f"{_seen(gil, room=True)}."
    )


def bank_awake(slow: Share, fast: Share, less: Interval, others: dict[str, Share]) -> str:
    """The account without the sleep, and the share of bad runs with it less that without it, through PyDLL without the GIL;
    others: without the sleep wherever else a second thread can be in the call."""
    said = f"Without the sleep, in the free-threaded build, it was inconsistent in {_seen(fast)}, and with it in {_seen(slow)}"
    if not less.excludes(0):
        return f"{said}: no difference is told from this."
    if less.value > 0:
        both = (
            f"{said}: less often, by a narrower window, by threads that were done before the next one began, or by both"
        )
        if fast.events or any(share.events for share in others.values()):
            return f"{both}."
        if others:
            both += f". It did not happen through {listed(list(others))} either"
        return f"{both}. Whether any two withdrawals met at all cannot be told from runs without one hit."
    return f"{said}: more often, which the width of the window does not explain."


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
    """One increment every so many ns, by two threads together: of one shared atomic number, and of numbers of their own."""
    return _dearer(
        "an atomic increment of one shared number",
        shared,
        "one of a number of each thread's own",
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


def prediction_1(pydll: Share) -> str:
    """The talk's counter without its barrier, without the GIL through PyDLL."""
    if not pydll.events:
        return f"Started one after the other, none of {pydll.trials} runs lost anything here. With threads that meet, read on."
    if pydll.events == pydll.trials:
        return f"Started one after the other, all {pydll.trials} runs lost something here."
    return f"Started one after the other, {pydll.events} of {pydll.trials} runs lost something here."


def prediction_2(as_run: Share, two: Share, fifty: Share) -> str:
    """CDLL in the build with the GIL: threads that start one after the other, and the threads that meet."""
    said = f"By threads that start one after the other, updates were lost in {_seen(as_run, room=True)}; by two threads that meet, in {_seen(two)}; by fifty, in {_seen(fifty)}"
    if as_run.events or two.events or fifty.events:
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
