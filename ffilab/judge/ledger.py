"""The ledger of claims: what was published, what was measured here, and the verdict of the rule.

Chapters hand in measurements; nobody hands in a verdict.
"""

import importlib
import json
from pathlib import Path

from ffilab import settings
from ffilab.errors import UserError
from ffilab.judge import basis, controls, derived, groups, verdicts
from ffilab.judge.claims import Claim, all_claims, declared, in_words
from ffilab.judge.estimates import LEVEL, Counted, Measurement
from ffilab.judge.rules import BESIDE, KINDS, NO, OPEN, YES, Answer, Event, Rule, Size
from ffilab.paths import EXECUTED, RESULTS

# The press keeps this folder beside the page, and only if the whole chapter succeeds.
CLAIMS = "claims"


class Handed:
    """What a chapter hands in for its claims. Every name is checked against the rules when it is put.

    rests_on: for each number, the plans and titles that were read for it, by `Session.reads`.
    """

    def __init__(self, session):
        self.corner = session.corner
        self._session = session
        self.rests_on: dict[str, dict[str, set[str]]] = {}
        session.reads.clear()
        self._open = {
            # A side and a size may speak of one number.
            claim.id: list(dict.fromkeys(test.measured for test in claim.tests))
            for claim in declared(self.corner).claims
        }
        self.measurements: dict[str, dict[str, Measurement]] = {identifier: {} for identifier in self._open}
        self.missing: dict[str, dict[str, str]] = {identifier: {} for identifier in self._open}

    def put(self, identifier: str, name: str, given) -> None:
        """Hand in one number under the name that a rule gives it, or the reason why there is none.

        given: a Measurement, a reason, None, or a function that returns one of them. What the function reads of the session is
        what this number rests on; what was read outside of such functions counts for all that follow. {GIL} and
        {FREE_THREADED} in a name stand for the labels of the chapter pair. Raises ValueError for a claim or a
        name that the corner's claims.toml does not have, or that was put already.
        """
        name = in_words(name)
        if name not in self._open.get(identifier, []):
            known = "; ".join(self._open.get(identifier, [])) or "none left"
            raise ValueError(
                f"notebooks/{self.corner}/claims.toml has no test {name!r} for {identifier} (open: {known})"
            )
        self._open[identifier].remove(name)
        outside = set(self._session.reads)
        measurement = given() if callable(given) else given
        self.rests_on.setdefault(identifier, {})[name] = set(self._session.reads)
        # What this function has read is no other number's.
        self._session.reads.intersection_update(outside)
        if isinstance(measurement, Measurement):
            self.measurements[identifier][name] = measurement
        else:
            self.missing[identifier][name] = measurement or "was not measured"

    def complete(self) -> "Handed":
        """All of it, once every test has got a number or a reason. Raises ValueError with what was forgotten."""
        forgotten = [f"{identifier}: {name}" for identifier, names in self._open.items() for name in names]
        if forgotten:
            raise ValueError(f"notebooks/{self.corner}/claims.py hands in nothing for {'; '.join(forgotten)}")
        return self


def measured(session) -> Handed:
    """What a session's records say about the claims of its corner: `measurements` of notebooks/<corner>/claims.py."""
    return session.once(_measured)


def _measured(session) -> Handed:
    handed = _of(session)
    if session.earlier:
        each = session.each
        titles = {line["title"] for line in session.record.experiments}
        healed = {title for title in titles if not session.mostly_lost(title)}
        lost = [{title for title in healed if one.mostly_lost(title)} for one in each]
        groups.with_sessions(handed, [_of(one) for one in each], set(session.plans), lost)
    return handed


def _of(session) -> Handed:
    return importlib.import_module(f"notebooks.{session.corner}.claims").measurements(session).complete()


def answers(session) -> dict[tuple[str, Rule], Answer]:
    """What the rules answer to a session's numbers, by claim and test, for a page that chooses its words by them.

    A sentence has a form for yes, no and open: what is withheld is open in it, and the reason says why.
    """
    return session.once(_answers)


def _answers(session) -> dict[tuple[str, Rule], Answer]:
    handed, withheld = measured(session), {}
    if session.budget.is_result:
        withheld = controls.withheld(controls.everything(session), handed)
    return {
        (claim.id, rule): Answer(OPEN, f"withheld: {answer.reason}") if answer.verdict == verdicts.WITHHELD else answer
        for claim in declared(session.corner).claims
        for rule, answer in verdicts.answers(
            claim, handed.measurements[claim.id], handed.missing[claim.id], withheld.get(claim.id, {})
        )
    }


def sides(session) -> dict[tuple[str, str], str]:
    """The same in a word, by claim and number; those on sizes are left to the ledger."""
    return {
        (claim, rule.measured): answer.verdict
        for (claim, rule), answer in answers(session).items()
        if not isinstance(rule, Size)
    }


def judge(claim: Claim, handed_in: dict | None) -> dict:
    """One row of the ledger. `handed_in`: what the claim's chapter wrote, or None.

    Raises ValueError if it lacks what a test needs: a renamed or forgotten number is an error, and no weaker test.
    """
    row = {
        "id": claim.id,
        "chapter": claim.corner,
        "claim": claim.claim,
        "published": claim.published,
        "where": claim.where,
        "measured": {},
        "interval": {},
        # Of a comparison over layouts: where another session will come out.
        "beside": {},
        "kind": verdicts.kind(claim),
        "verdict": verdicts.NOT_MEASURED if claim.corner else verdicts.NOT_WRITTEN,
        "qualifier": "",
        # Whether the published size agrees.
        "size": "",
        "reason": "its chapter was not measured yet" if claim.corner else "its chapter is not written yet",
        "takes": "",
        "parts": [],
        # What was counted or looked at once has no interval.
        "counted": [],
        "untested": list(claim.untested),
        # Where it is measured; what its author saw, and what is otherwise here.
        "section": f"notebooks/{claim.corner}/{claim.section}" if claim.section else "",
        "saw": claim.saw,
        "differs": claim.differs,
        "provenance": {},
    }
    if claim.not_measurable:
        row["verdict"], row["reason"] = row["kind"], claim.not_measurable
    if handed_in is None:
        return row
    row["provenance"] = provenance = handed_in["provenance"]
    numbers = {name: Measurement.from_json(given) for name, given in handed_in["measurements"].items()}
    if unknown := set(numbers) - {rule.measured for rule in claim.tests}:
        raise ValueError(f"{claim.id}: no test measures {', '.join(sorted(unknown))}")
    for name, measurement in numbers.items():
        interval = measurement.interval
        row["measured"][name], row["interval"][name] = interval.value, [interval.low, interval.high]
        if isinstance(measurement.estimate, Counted):
            row["counted"].append(name)
        beside = {what: [interval.low, interval.high] for what, interval in basis.two(measurement.estimate).items()}
        beside.pop(basis.MIDDLE, None)
        if beside:
            row["beside"][name] = beside
    if not provenance["is_result"]:
        if not claim.not_measurable:
            row["verdict"], row["reason"] = verdicts.NO_RESULT, "smoke test: its figures are no result"
        return row
    verdict = verdicts.of_claim(claim, numbers, handed_in["missing"], handed_in.get("withheld"))
    # A claim that follows from others has no layouts of its own.
    limit = basis.qualifier(provenance["rests_on"]) if "rests_on" in provenance else ""
    row["qualifier"] = "; ".join(filter(None, (verdict.qualifier, limit)))
    row["parts"] = [
        {
            "part": rule.title,
            "measured": rule.measured,
            "kind": type(rule).__name__.lower(),
            "experiment": rule.experiment,
            "verdict": answer.verdict,
            "reason": answer.reason,
        }
        for rule, answer in verdict.parts
    ]
    if claim.not_measurable:
        return row
    row["verdict"], row["size"] = verdict.word, verdict.size
    row["reason"] = "; ".join(part_in_words(part) for part in row["parts"])
    row["takes"] = verdicts.what_it_takes(verdict, provenance.get("minutes"))
    return row


def rows_of(handed: Handed, provenance: dict, checks: list[controls.Check]) -> list[tuple[dict, dict]]:
    """For each claim of a corner, what is handed in and the judged row. checks: what the run's controls found."""
    withheld = controls.withheld(checks, handed)
    judged = []
    for claim in declared(handed.corner).claims:
        handed_in = {
            "measurements": {
                name: measurement.as_json() for name, measurement in handed.measurements[claim.id].items()
            },
            "missing": handed.missing[claim.id],
            "withheld": withheld.get(claim.id, {}),
            "provenance": provenance,
        }
        judged.append((handed_in, judge(claim, handed_in)))
    return judged


def judged(session) -> list[tuple[dict, dict]]:
    """The same of a session: first its controls, then its claims."""
    return rows_of(measured(session), session.provenance, controls.everything(session))


def hand_in(session) -> list[dict]:
    """Called by a chapter: the judged rows of its claims. What was handed in is kept if the press executes the page."""
    folder = settings.told("hand_in")
    rows = []
    for handed_in, row in judged(session):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{row['id']}.json").write_text(json.dumps(handed_in, indent=1))
        rows.append(row)
    return rows


def counts_of(row: dict) -> str:
    """How the parts of a row were answered, without its sizes and what stands beside it: `3 yes, 1 no`. Empty if it has none."""
    return verdicts.counts([part["verdict"] for part in row["parts"] if is_part(part)])


def is_part(part: dict) -> bool:
    """Does it count for the word of its claim? Neither a size does, nor what stands beside the claim."""
    return part["kind"] != "size" and part["experiment"] != BESIDE


def is_withheld(row: dict, name: str) -> bool:
    """Is what this number says of the claim withheld?"""
    return any(
        part["verdict"] == verdicts.WITHHELD
        for part in row["parts"]
        if part["measured"] == name and part["kind"] != "size"
    )


def part_title(part: dict) -> str:
    """What a part of a row is about: `ratio, in the published size`."""
    what = f"{part['part']}{', in the published size' * (part['kind'] == 'size')}"
    return what + {"as run": " (by the author's program)", BESIDE: " (beside the claim)"}.get(part["experiment"], "")


def part_in_words(part: dict) -> str:
    """A part of a row with why it is answered so: `ratio, in the published size: the whole interval lies outside …`."""
    return f"{part_title(part)}: {part['verdict']}, {part['reason']}"


def verdict_of(row: dict) -> str:
    """A row's verdict with what stands behind it: `mixed (3 yes, 1 open)`."""
    return row["verdict"] + (f" ({row['qualifier']})" if row["qualifier"] else "")


def in_lines(row: dict) -> list[str]:
    """A row in words: id, verdict and size; then each part, and what would decide what is open."""
    size = f"; published size: {row['size']}" if row["size"] else ""
    parts = [f"  {part_in_words(part)}" for part in row["parts"]] or [f"  {row['reason']}"]
    further = [f"  Not tested: {part}" for part in row["untested"]] + ([f"  {row['takes']}"] if row["takes"] else [])
    return [f"{row['id']}: {verdict_of(row)}{size}", *parts, *further]


def expected_wrong(rows: list[dict]) -> float:
    """How many wrong answers the book's level lets one expect in a ledger, at most: one chance for each part, and each size, that an
    interval answered."""
    return verdicts.ALPHA * sum(
        _may_err(part) for row in rows for part in row["parts"] if part["measured"] not in row["counted"]
    )


def trusted(rows: list[dict]) -> str:
    """The same in a sentence."""
    answered = sum(part["verdict"] in (YES, NO) for row in rows for part in row["parts"])
    return (
        f"{answered} parts and sizes are answered, each at the level of its interval, {LEVEL:.0%}: {expected_wrong(rows):.2f} wrong answers are "
        "to be expected among them at most, as far as the intervals cover what they say."
    )


def _may_err(part: dict) -> bool:
    """Return whether a part was answered by an interval. An event that was seen is none; that it is rarer than a rate rests on one."""
    rule = KINDS[part["kind"]]
    return (
        part["verdict"] == rule.unseen if issubclass(rule, Event) else rule.by_interval and part["verdict"] in (YES, NO)
    )


def collect(stale: dict[str, list[str]] | None = None) -> list[dict]:
    """Judge every claim from the files beside the executed pages, write `ledger.json`, return its rows.

    stale: by corner, what has changed since its page was made; it becomes a field of the row. Raises UserError if a chapter
    that was measured handed in nothing for one of its claims.
    """
    rows, by_claim = [], {}
    for claim in all_claims():
        handed_in = by_claim[claim.id] = _handed_in(claim)
        # A claim whose tests were edited is measured again; its page is shown as stale meanwhile.
        tests = {rule.measured for rule in claim.tests}
        edited = handed_in is not None and {*handed_in["measurements"], *handed_in["missing"]} != tests
        if edited:
            by_claim[claim.id] = None
        row = judge(claim, by_claim[claim.id])
        if edited:
            row["reason"] = f"its tests have changed since: `make chapter NAME={claim.corner}` measures it again"
        rows.append({**row, "stale": (stale or {}).get(claim.corner, [])})
    rows = derived.judged(rows, by_claim, judge)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "ledger.json").write_text(json.dumps(rows, indent=1))
    return rows


def _handed_in(claim: Claim) -> dict | None:
    """Read what a chapter handed in for a claim; None if the chapter was not measured."""
    executed = EXECUTED / claim.corner
    if not claim.corner or not executed.exists():
        return None
    try:
        return json.loads((executed / CLAIMS / f"{claim.id}.json").read_text())
    except (OSError, ValueError):
        raise UserError(
            f"The chapter {claim.corner!r} handed in nothing for claim {claim.id}: "
            f"run `make chapter NAME={claim.corner}`, and have its notebook call chapter.verdicts."
        ) from None
