"""The sentences of the chapter "GIL Balm" that a run chooses: each from the intervals that the verdicts use.

`where` is "with the GIL", "on 3.15" or the like. A gain is how many times as fast one way is as another: above 1 it is faster.
"""

import math

from ffilab.draw import capital, listed, text
from ffilab.judge.estimates import Interval, Share, known

UNKNOWN = "there are too few values for an interval"
# Page faults for each tuple: below the first no memory goes back, above the second at least half an arena does.
FEW, MANY = 10, 128
# How far two ways, or two lengths of a text, may differ and still count as alike: below it nobody would choose by it.
ALIKE = 0.1


def _times(gain: Interval) -> str:
    return text(gain if gain.value >= 1 else gain.inverse)


def faults_fragment(found: Interval) -> str:
    """Page faults for each tuple: so few that none belongs to a tuple are not spelled out; and a count is never below 0."""
    return "fewer than 0.1" if found.high < 0.1 else text(Interval(found.value, max(0.0, found.low), found.high))


def _compared(
    where: str, one: str, other: str, ratio: Interval | None, above: str, below: str, least: float = 0.0
) -> str:
    """Two ways and a ratio of their times; what is said where it is above 1 and below. Both are plurals. Below `least`, two
    copies of the rule could differ as much."""
    start = capital(where)
    if ratio is None:
        return f"{start}, {one} and {other} were not both measured here."
    if not ratio.is_known:
        return f"{start}, {one} and {other} cannot be compared: {UNKNOWN}."
    if not ratio.excludes(1):
        return f"{start}, no difference between {one} and {other} is seen: the ratio of their times is {text(ratio)}."
    if abs(math.log(ratio.value)) < math.log1p(least):
        return f"{start}, whether {one} and {other} differ is undecided: the ratio of their times is {text(ratio)}, and the A/A test resolves no less than {least:.0%}."
    return f"{start}, {one} {(below if ratio.value < 1 else above).format(_times(ratio))} {other}."


LONGER, FASTER = "take {} times as long as", "are {} times as fast as"


def speed(where: str, one: str, other: str, gain: Interval | None, least: float = 0.0) -> str:
    """How many times as fast one way is as another."""
    return _compared(where, one, other, gain, FASTER, LONGER, least)


def duration(where: str, one: str, other: str, ratio: Interval | None) -> str:
    """How many times as long one way takes as another."""
    return _compared(where, one, other, ratio, LONGER, FASTER)


def holds_on(gains: dict[str, dict[str, Interval | None]]) -> str:
    """The question of the page, for each interpreter: ways against CPython's own strings, on one thread."""
    said = [holds_where(gains)]
    for label, each in gains.items():
        parts = [f"{way} {_faster(gain)}" for way, gain in each.items()]
        said.append(f"On {label}: {', '.join(parts)}.")
    return " ".join(said)


def holds_where(gains: dict[str, dict[str, Interval | None]]) -> str:
    """The same without its numbers: the author's two designs decide, all ways but the last; the last is ours."""
    *designs, _ = next(iter(gains.values()))
    said = [_there([each[way] for each in gains.values()], list(gains), f"{way} strings") for way in designs]
    ours = _there([list(each.values())[-1] for each in gains.values()], list(gains), "our strings of pages and tuple")
    return f"On one thread, all ways in one process, his {'; his '.join(said)}. Beside them, {ours}."


def _there(gains: list[Interval | None], labels: list[str], who: str) -> str:
    """On which interpreters a way is faster than CPython's own strings."""
    if all(known(gain) and gain.low > 1 for gain in gains):
        return f"{who} are faster than CPython's own on every CPython of this run"
    if all(known(gain) and gain.high < 1 for gain in gains):
        return f"{who} are slower than CPython's own on every CPython of this run"
    there = [label for label, gain in zip(labels, gains) if known(gain) and gain.low > 1]
    if not there:
        return f"{who} are not seen to be faster than CPython's own on any CPython of this run"
    return f"{who} are not seen to be faster than CPython's own on every CPython of this run, but on {listed(there)}"


def _faster(gain: Interval | None) -> str:
    if not known(gain):
        return "strings could not be compared"
    if not gain.excludes(1):
        return f"strings are not told apart from CPython's own ({text(gain)})"
    if gain.value > 1:
        return f"strings are {_times(gain)} times as fast"
    return f"strings take {_times(gain)} times as long"


def still_pays(gil: Interval | None, free_threaded: Interval | None, change: Interval | None) -> str:
    """The strings of pages and tuple against CPython's own in both builds, and the first gain over the second."""
    if not (known(gil) and known(free_threaded)):
        return "This run cannot say: the strings of pages and tuple were not measured on both builds."
    if not free_threaded.excludes(1):
        return (
            "This run cannot say: on one thread without the GIL, all ways in one process, the strings of pages and tuple are not told apart from CPython's own: the "
            f"ratio is {text(free_threaded)}."
        )
    if free_threaded.high < 1:
        return f"On one thread without the GIL, all ways in one process, the strings of pages and tuple take {_times(free_threaded)} times as long as CPython's own."
    less = (
        "less than"
        if known(change) and change.low > 1
        else "more than"
        if known(change) and change.high < 1
        else "neither more nor less, as far as this run can tell, than"
    )
    there = f"{_times(gil)} times" if gil.low > 1 else f"a ratio of {text(gil)}"
    return (
        f"On one thread without the GIL, all ways in one process, the strings of pages and tuple are {_times(free_threaded)} times as fast as CPython's own, "
        f"which is {less} with it ({there})."
    )


def giving_back(ratio: Interval | None, held: Interval | None, given: Interval | None) -> str:
    """CPython's own strings where an arena goes back with each tuple over where none can; page faults in both."""
    if not (known(ratio) and held is not None and given is not None):
        return "What it costs to give arenas back was not measured here."
    counts = f"{faults_fragment(given)} page faults for each tuple against {faults_fragment(held)}"
    if not given.value > MANY > FEW > held.value:
        return f"The two conditions were not brought about in this run ({counts}), and nothing is known of what giving back costs."
    if not ratio.excludes(1):
        return (
            f"Whether giving an arena back costs anything cannot be told here: the ratio is {text(ratio)} ({counts})."
        )
    if ratio.value < 1:
        return f"With an arena given back, CPython's own strings do not take longer but are {_times(ratio)} times as fast ({counts})."
    return f"With an arena given back at each drop, CPython's own strings take {_times(ratio)} times as long as with all held ({counts})."


def as_it_came(faults: Interval | None) -> str:
    """Page faults of CPython's own strings as the author ran it: which of the two conditions was that?"""
    if faults is None:
        return "How many page faults there were as the author ran it is not known here."
    start, count = "With one thread, as the author ran it,", f"({faults_fragment(faults)} page faults for each tuple)"
    if faults.high < FEW:
        return f"{start} no arena went back here {count}: arenas are no part of those ratios."
    if faults.low > MANY:
        return f"{start} an arena went back with each tuple here {count}."
    return f"{start} it cannot be told here which of the two conditions it was {count}."


def steps(method: str, gains: list[Interval | None], process: Interval | None, design: Interval | None) -> str:
    """From the first experiment to the corrected one: the gain of his design in processes of its own, of his where all ways share
    one, of ours there; the second over the first, and the third over the second."""
    if not all(known(one) for one in (*gains, process, design)):
        return f"For {method} strings, the two experiments cannot be compared here."
    apart, shared, ours = map(text, gains)
    said = [
        f"{what} changes the gain by a factor of {text(one)}"
        if one.excludes(1)
        else f"of {what} no effect is seen ({text(one)})"
        for what, one in (("the shared process", process), ("our design", design))
    ]
    return (
        f"For {method} strings, the gain is {apart} with his design in processes of its own, {shared} with it where all ways share a "
        f"process, and {ours} with our design there: {'; '.join(said)}."
    )


def memory_bound(where: str, small: Interval | None, large: Interval | None, megabytes: float) -> str:
    """One thread. A string of the whole text over one of a small text, which a tuple's fixed cost works against; a large text over
    the whole, which decides: above 1, memory is felt. megabytes: what the heads of the large text take.
    """
    start = f"{capital(where)} and with one thread"
    if not (known(small) and known(large)):
        return f"{start}, whether memory is the bound cannot be told: {UNKNOWN}."
    figures = (
        f"a string of the whole text takes {text(small)} times as long as one of a text a twentieth as long, and one of a "
        f"text four times as long takes {text(large)} times as long"
    )
    reach = f"the heads of the longest of these texts take {megabytes:.1f} MB, and many processors have a cache that holds them"
    if large.high < 1 + ALIKE:
        return f"{start}, {figures}. From the author's text to one of four times its length, no string is dearer by {ALIKE:.0%}; {reach}."
    if large.low > 1:
        return f"{start}, {figures}. The way to memory has a part in it, as its author says; {reach}."
    return f"{start}, {figures}. Whether memory is the bound is undecided here; {reach}."


def what_bounds(where: str, parts: dict[str, Interval | None]) -> str:
    """What takes a block's time: by what was taken away, the time with it over the time without; the largest first."""
    if not all(known(ratio) for ratio in parts.values()):
        return f"{capital(where)}, what bounds the block is not known: not all of its parts were measured."
    said, least = [], min(ratio.high for ratio in parts.values())
    for what, ratio in sorted(parts.items(), key=lambda part: -part[1].value):
        if ratio.low > 1:
            most = "costs most" if not said and ratio.low > least else "costs time"
            said.append(f"{what} {most} ({text(ratio)} times).")
        elif ratio.high < 1:
            said.append(f"{what} costs nothing, and saves time ({text(ratio)} times).")
        else:
            said.append(f"{what} is not seen to cost anything ({text(ratio)} times).")
    return f"{capital(where)}: {' '.join(said)}"


def twenty_times(
    threads: int, published: float, gain: Interval | None, rise: Interval | None, published_rise: float
) -> str:
    """With many threads: CPython's own strings over those in a block, beside what was published; and CPython's own over themselves
    with one thread, beside the same of what was published.
    """
    said = f'The author writes: "you could argue this is a {published:.0f}x speed up".'
    if not known(gain):
        return f"{said} With {threads} threads, the two were not both measured here."
    beside = (
        f"which is less than {published:.0f}"
        if gain.high < published
        else f"which is more than {published:.0f}"
        if gain.low > published
        else f"and {published:.0f} lies within the interval"
    )
    here = f"CPython's own strings take {text(gain)} times as long as strings in a block"
    if not gain.excludes(1):
        here = f"no difference between CPython's own strings and those in a block is seen, with a ratio of {text(gain)}"
    elif gain.value < 1:
        here = f"strings in a block take {text(gain.inverse)} times as long as CPython's own"
        beside = "the other way round"
    return f"{said} With {threads} threads here, {here}, {beside}. {_rise(threads, rise)} The author's took {published_rise:.2f} times as long in the post."


def _rise(threads: int, rise: Interval | None) -> str:
    if not known(rise):
        return "How CPython's own strings go from one thread to many is not known here."
    if not rise.excludes(1):
        return f"CPython's own strings are not seen to change from one thread to {threads} ({text(rise)})."
    if rise.value > 1:
        return (
            f"CPython's own strings, for the same work, take {text(rise)} times as long with {threads} threads as with one: that is a "
            "part of the ratio, and no merit of the block's memory."
        )
    return f"CPython's own strings, for the same work, are {_times(rise)} times as fast with {threads} threads as with one."


def two_passes(where: str, who: str, ratio: Interval | None) -> str:
    """The time of a way over that of a loop that writes the same bytes, then looks at each head: our schedule, and no floor."""
    start = capital(where)
    if not known(ratio):
        return f"{start}, how near {who} come to the loop that writes and looks is not known."
    times = f"{text(ratio)} times its time"
    if ratio.low > 1 - ALIKE and ratio.high < 1 + ALIKE:
        return f"{start}, {who} come within {ALIKE:.0%} of the loop that writes and looks: {times}."
    if ratio.low > 1:
        return f"{start}, {who} take longer than the loop that writes and looks: {times}."
    if ratio.high < 1:
        return f"{start}, {who} take less than the loop that writes and looks: {times}."
    return f"{start}, whether {who} take longer than the loop that writes and looks is undecided: {times}."


def two_threads(who: str, rate: Interval | None) -> str:
    """Without the GIL: the rate of two threads over that of one, and what gain is excluded if none is seen."""
    if not known(rate):
        return f"Without the GIL, what a second thread brings to {who} is not known."
    times = f"{text(rate)} times the rate of one"
    if rate.low > 1:
        return f"Without the GIL, two threads make {who} at {times}."
    if rate.high < 1:
        return f"Without the GIL, a second thread slows {who} down: two make them at {times}."
    return f"Without the GIL, no difference by a second thread is seen for {who}: two make them at {times}, which excludes a gain above {rate.high - 1:.0%}."


def in_company(
    shared: Interval | None, gain: Interval | None, alone: Interval | None, gain_alone: Interval | None
) -> str:
    """CPython's own strings without the GIL, one thread, ns for each: where all ways share a process, and alone; and what pages and
    tuple gain in both."""
    if not (known(shared) and known(alone) and known(gain) and known(gain_alone)):
        return "Without the GIL, the corrected experiment cannot be compared with processes of their own."
    gains = f"{text(gain)} times against {text(gain_alone)}"
    costs = f"CPython's own strings: {text(shared, 'ns')} against {text(alone, 'ns')}"
    if gain.low > gain_alone.high or gain.high < gain_alone.low:
        what = "larger" if gain.low > gain_alone.high else "smaller"
        return f"Without the GIL, the gain of pages and tuple is {what} where all ways share a process than alone: {gains} ({costs})."
    return f"Without the GIL, no difference of that gain is seen between a process that all ways share and processes of their own: {gains} ({costs})."


def cold_heaps(ratio: Interval | None, cold: Interval | None, warm: Interval | None) -> str:
    """CPython's own strings, few by each of two threads without the GIL: the time of threads that have just started over that of
    warm ones; page faults for each tuple in both."""
    if not (known(ratio) and cold is not None and warm is not None):
        return "What an empty heap costs a thread that has just started is not known here."
    counts = f"{faults_fragment(cold)} page faults for each tuple against {faults_fragment(warm)}"
    if not ratio.excludes(1):
        return f"Whether two threads that have just started are slower than two that made a tuple before cannot be told: {text(ratio)} times ({counts})."
    if ratio.value < 1:
        return f"Two threads that have just started are not slower but {_times(ratio)} times as fast as two that made a tuple before ({counts})."
    return f"Two threads that have just started take {_times(ratio)} times as long as two that made a tuple before ({counts})."


def released(who: str, ratio: Interval | None, threads: int) -> str:
    """With the GIL and many threads: time where it is released while strings are made, over time where it is kept."""
    if not known(ratio):
        return f"What it does to {who} to release the GIL is not known here."
    if not ratio.excludes(1):
        return f"Whether it helps {who} to release the GIL cannot be told here: with {threads} threads, released over kept is {text(ratio)}."
    if ratio.value < 1:
        return f"With {threads} threads and the GIL released while they are made, {who} are {_times(ratio)} times as fast as with it kept."
    return f"With {threads} threads and the GIL released while they are made, {who} take {_times(ratio)} times as long as with it kept."


def stays(where: str, who: str, alive: Interval | str | None, after: Interval | str | None) -> str:
    """Resident bytes for each string while all are alive, and after all were dropped; in words if that cannot be."""
    start = capital(where)
    if isinstance(alive, str):
        return f"{start}, what was measured of {who} is impossible, and says nothing ({alive})."
    if not (known(alive) and known(after)):
        return f"{start}, what stays of {who} is not known here."
    each = f"of {alive.value:.0f} bytes for each"
    if after.low > 0.75 * alive.high:
        # Rounded down: what is certain to stay, and never more than all.
        share = min(100, int(100 * after.low / alive.high))
        much = "all" if share == 100 else f"nearly all, at least {share}%,"
        return f"{start}, of {who}, what they took stays right after the drop: {much} {each}."
    if after.high < 0.25 * alive.low:
        share = math.ceil(100 * max(after.high, 0) / alive.low)
        return f"{start}, of {who}, a large part of what they took is back with the system right after the drop: at most {share}% {each} stays."
    both = f"{text(after, 'bytes')} of {text(alive, 'bytes')} for each"
    return f"{start}, of {who}, a part of what they took stays right after the drop, or this run cannot tell ({both})."


def probes_agree(same: int, asked: int, differing: list[str]) -> str:
    """To how many probes every kind of string gives one answer; where the interpreters do not agree about ours."""
    start = f"{same} of {asked} probes get the same answer from every kind of string."
    if same == asked:
        start = f"All {asked} probes get the same answer from every kind of string."
    if differing:
        return f"{start} Whether ours answer as a str does, not all CPythons of this run agree, on {listed(differing)}."
    return f"{start} To which probes ours answer as a str does, all CPythons of this run agree."


def unlike_a_subclass(probes: list[str]) -> str:
    """To which probes ours answer otherwise than an ordinary subclass of str."""
    if not probes:
        return "No probe tells ours from an ordinary subclass."
    return f"From an ordinary subclass, ours differ in {listed(probes)}."


def copied_type(named: str, pickled: str) -> str:
    """What a string of the copied type says is the name of its type, and what comes of pickling it."""
    name = (
        "The copied type is the better liar: it gives its name as str."
        if named == "'str'"
        else f"The copied type does not pass for str by its name: {named}."
    )
    if "Error" in pickled:
        return f"{name} It is also the worse citizen, as pickle says: {pickled.rstrip('.')}."
    return f"{name} Pickle takes it: the answer is {pickled}."


def misused(what: str, where: dict[str, bool | None]) -> str:
    """On which interpreters something happened. None: the process did not live to say."""
    if not where:
        return f"Whether {what} was not asked here."
    yes, no, gone = ([label for label, one in where.items() if one is answer] for answer in (True, False, None))
    parts = []
    if yes:
        parts.append(f"on {listed(yes)}, {what}")
    if no:
        parts.append(f"not so on {listed(no)}")
    if gone:
        parts.append(f"no answer on {listed(gone)}, as the process ended")
    return f"{capital('; '.join(parts))}."


def layouts_differ(one: str, other: str, fields: list[str]) -> str:
    """Which fields two builds keep in different places, or with other bits."""
    if not fields:
        return f"{one} and {other} keep all of these fields in the same places."
    if len(fields) > 4:
        return f"{one} and {other} differ in {len(fields)} of these fields."
    return f"{one} and {other} differ in {listed(fields)}."


def wrong_layout(wrong: Share | None) -> str:
    """Of strings and tuples that were written by the layout of another build: how many died or answered wrongly."""
    if wrong is None:
        return "One build was there alone, and no other layout could be tried."
    count = f"{wrong.events} of {wrong.trials} forgeries by the layout of another build"
    if wrong.events == wrong.trials:
        return f"All of them went wrong: {count} died, or gave an answer that is not the real one's."
    if wrong.events:
        return f"It depends on the two builds: {count} died, or gave an answer that is not the real one's."
    return f"None of them went wrong: {count} died or gave a wrong answer. That proves no safety."


def other_version(wrong: Share | None) -> str:
    """The same, between versions that are built alike."""
    if wrong is None:
        return "Two versions of the same kind of build were not there, so what changes from version to version was not tested in this run, only what changes from build to build."
    count = f"{wrong.events} of {wrong.trials}"
    if wrong.events:
        return f"Between versions of the same kind of build, {count} went wrong: the private layouts did change from version to version."
    return f"Between versions of the same kind of build, {count} went wrong: no change of layout is seen among them."


def module_refuses(refused: Share | None) -> str:
    """Our module as it was built for another CPython, loaded by force: how often it was refused at import."""
    if refused is None:
        return "There was no module built for another CPython to load."
    count = f"{refused.events} of {refused.trials}"
    if refused.events == refused.trials:
        return (
            f"Our own module, built for another CPython and loaded by force, was refused at import each time ({count})."
        )
    if refused.events:
        return f"Our own module, built for another CPython and loaded by force, was refused at import in {count} cases, and not in the others."
    return f"Our own module, built for another CPython and loaded by force, was never refused at import ({count})."


def list_grows(ended: Share | None, own: dict[str, bool]) -> str:
    """Acts that make CPython take our memory for its own: how many ended the process. own: did its own append work?"""
    if ended is None:
        return "No list was forged here."
    count = f"{ended.events} of {ended.trials} processes"
    if ended.events == ended.trials:
        start = f"Each time that the list grew past its room or was cleared by CPython's own code, the process ended ({count})."
    elif ended.events:
        start = f"When the list grew past its room or was cleared by CPython's own code, {count} ended, and the others went on."
    else:
        start = f"That the list grew or was cleared ended no process here ({count}). That is no proof that it is safe."
    works = [label for label, one in own.items() if one]
    if not own:
        return start
    if len(works) == len(own):
        return f"{start} With an append of its own it grew well, on {listed(works)}, as long as nobody but that append made it grow."
    return f"{start} Its own append worked on {listed(works) if works else 'no interpreter'} only."


def same_call_twice(ratios: dict[str, Interval], alarm: float) -> str:
    """The A/A test by interpreter, and what an alarm does. A copy of which this run knows too little has not passed."""
    told = {label: ratio for label, ratio in ratios.items() if ratio.is_known}
    raised = [label for label, ratio in told.items() if ratio.low > 1 + alarm or ratio.high < 1 - alarm]
    alike = [label for label, ratio in told.items() if 1 - alarm <= ratio.low and ratio.high <= 1 + alarm]
    said = []
    if raised:
        said.append(
            f"On {listed(raised)}, the two copies differ by more than {alarm:.0%}: what tells two copies apart would be taken for a gain, and a "
            "number of this experiment that could not bear as much is marked as withheld."
        )
    if alike:
        said.append(f"On {listed(alike)}, the two copies differ by {alarm:.0%} at most.")
    if vague := [label for label in ratios if label not in (*raised, *alike)]:
        said.append(
            f"On {listed(vague)}, this run cannot tell whether the two copies differ by more than {alarm:.0%}: the test says nothing there."
        )
    return " ".join(said) or f"The A/A test says nothing here: {UNKNOWN}."


def left_out(passed: bool | None, found: str) -> str:
    """Of the corrected experiment: were batches of all arms left out alike? If not, the worst arm."""
    if passed is None:
        return "Whether batches of all ways were left out alike is not known here."
    if passed:
        return "Of no way were many more batches left out than of the others."
    return f"Of one way more batches were left out than of the others ({found}): its own time rests on fewer."


def prediction_1(gil: Interval | None, free_threaded: Interval | None) -> str:
    """ns for one line with PyUnicode_New, made and dropped, in the corrected experiment."""
    if not (known(gil) and known(free_threaded)):
        return "What it takes is not known here."
    both = f"{text(gil, 'ns')} with the GIL, {text(free_threaded, 'ns')} without it"
    return f"It takes {both}."


def prediction_2(pooled: Interval | None, block: Interval | None, new: Interval | None) -> str:
    """With 16 threads over one: the time of each design, and of CPython's own strings. A design suffers by its own making as far as
    it loses more than they do."""
    if not (known(pooled) and known(block) and known(new)):
        return "Which of them suffers cannot be told here."
    both = f"16 threads over one: pool {text(pooled)}, block {text(block)}, CPython's own {text(new)}"
    if max(pooled.high, block.high) < 1:
        return f"Neither suffers: both are faster with 16 threads ({both})."
    said = []
    for name, ratio in (("the pool", pooled), ("the block", block)):
        than = "more than" if ratio.low > new.high else "less than" if ratio.high < new.low else None
        no_other = f"no difference between {name} and CPython's own strings is seen"
        said.append(f"{name} suffers {than} CPython's own strings" if than else no_other)
    return f"{capital('; '.join(said))} ({both})."


def prediction_3(failed: list[str], asked: list[str], without: list[str]) -> str:
    """Which of the calls go wrong for ours, with a hash that is not known yet and a NUL at the end; and, of those asked, for the
    original's."""
    start = (
        f"Of {len(asked)} probes for ours, filled in with care, these answer otherwise than for a real string: {listed(failed)}."
        if failed
        else f"None of {len(asked)} probes answers otherwise for ours, if every field is filled in with care."
    )
    if without:
        return f"{start} With a hash of 0, without a NUL, or with a copied type, these go wrong: {listed(without)}."
    return f"{start} That a hash of 0, a missing NUL or a copied type breaks something is not seen in this run."


def prediction_4(change: Interval | None) -> str:
    """The strings of pages and tuple: what it gains with the GIL over what it gains without."""
    if not known(change) or not change.excludes(1):
        return "Whether it gains more or less without the GIL cannot be told here."
    if change.value > 1:
        return f"Less: its gain with the GIL is {text(change)} times that without it."
    return f"More: its gain without the GIL is {text(change.inverse)} times that with it."
