"""The sentences that a run chooses: data in notebooks/<chapter>/sentences.toml, an answer of a rule poured into a form.

    ["ratio-noop-{build}"]
    for = {build = ["gil", "free-threaded"]}
    ask = {number = "noop: ratio on {label}", null = 1.0}
    yes = "{Where}, a call through CDLL takes {value} times as long as one through PyDLL."
    no = "{Where}, a call through PyDLL takes {value.inverse} times as long as one through CDLL."
    open = "{Where}, no difference is seen: CDLL over PyDLL is {value}."

`ask`: a rule on a number of the chapter, as in claims.toml (by itself: the number lies above `null`), or a test of the
ledger ({claim, number}; on its size with kind = "size"), or whether a number is there at all (kind = "there"), or
whether its whole interval lies above that of another one ({number, than}); or a list of them. A form stands under the
answers, in the order of the questions: "yes no". A * stands for any answer; what is left out at the end, or a -, is not
looked at, so that its number need not be there. The first form that fits is taken, and there must be one for all
answers; a sentence that asks nothing has one, `text`. `few`: where a number that is looked at is not there, or has no
interval; without it NOTHING is said, with the reason, where there is one.

Poured in: `{value}`, the number of the first question, and what `with` names: numbers, other sentences and fragments
("@name"). `{x}` is a number with its interval, `{x:ns}` with a unit, `{x:%}` in per cent, `{x:+ns}` with its sign;
`{x.inverse}`, `{x.negative:ns}`, `{x.excess:%}` (of a ratio, what is above 1), `{x.value:.0f}`, `{x.percent.high:.2g}
%`, `{x.events}` of `{x.trials}`, `{x.missing}` (why there is no number, or no interval). A sentence with `part = true`
is only poured into others.

A list: parts with names such as "gain/a loop" say "it pays for …|a loop" or "… do(es) not pay|a loop", and "@gain/"
pours in each of these once, in the order of the forms, with its items in place of the …: "it pays for a loop and a
call; …". `{list.capital}` begins a sentence.

`for`: variables, each with its values; the sentence is made for all combinations. A value may be a table that brings
further variables; one called `name` is the sentence's name. `build` brings {label}, {where} and {Where}. A text instead
of values names a list of the chapter's cells, or of numbers.py.

A translation is a second file, `sentences.zh_TW.toml`, with the forms of the sentences that it translates, and `for`
where it holds words. It is used where LANGUAGE names it; the rest stays English.
"""

import functools
import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ffilab.judge import claims, ledger, numbers
from ffilab.judge.chapter import experiment_module, fragments_module, numbers_module
from ffilab.judge.claims import in_words
from ffilab.judge.numbers import Numbers
from ffilab.judge.poured import NOTHING, Poured, Text, grouped
from ffilab.judge.questions import larger
from ffilab.judge.rules import NO, OPEN, YES, Rule, rule_of
from ffilab.judge.wording import capital
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS
from ffilab.setup.catalogue import FREE_THREADED, GIL

BUILDS = {"gil": (GIL, "with the GIL"), "free-threaded": (FREE_THREADED, "without the GIL")}
KEYS = {"for", "ask", "with", "part", "few"}
ANSWERS = (YES, NO, OPEN)


@dataclass(frozen=True)
class Question:
    """One question of a sentence: a rule, or a test of the ledger by its claim and number, or whether a number is
    there, or larger `than` another one."""

    number: str
    rule: Rule | None = None
    claim: str = ""
    size: bool = False
    than: str = ""
    there: bool = False

    @property
    def answers(self) -> tuple[str, ...]:
        return ANSWERS[:2] if self.there else ANSWERS

    def answer(self, session, found: Numbers) -> str | None:
        """The answer of the rule; None if the number is not there, or has no interval."""
        estimate = found.told(self.number).estimate
        if estimate is not None and not estimate.interval.is_known:
            estimate = None
        if self.there:
            return NO if estimate is None else YES
        if estimate is None:
            return None
        if self.than:
            other = found.told(self.than).estimate
            return None if other is None else larger(estimate.interval, other.interval)
        if self.claim:
            return ledger.sides(session, self.size)[self.claim, self.number]
        return self.rule.answer(estimate).verdict


@dataclass(frozen=True)
class Sentence:
    """A sentence with its questions, what is poured into it, and its forms by the answers."""

    name: str
    questions: tuple[Question, ...]
    poured: dict[str, str]
    forms: dict[tuple[str, ...], str]
    few: str = NOTHING
    part: bool = False

    def form(self, answers: tuple[str | None, ...]) -> str | None:
        """The first form that fits these answers; None if there is none."""
        for pattern, form in self.forms.items():
            both = zip(pattern, answers)
            if all(answer == wanted or (wanted == "*" and answer) or wanted == "-" for wanted, answer in both):
                return form
        return None


class Said(Mapping[str, str]):
    """The sentences of a session's chapter, and what no form can say, by name; each is made when it is asked for."""

    def __init__(self, session):
        self._session, self._numbers = session, numbers.numbers_of(session)
        self._sentences, self._fragments = read_sentences(session.chapter), fragments(session)
        self._made: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._made:
            if name in self._sentences:
                self._made[name] = self._say(self._sentences[name])
            elif name in self._fragments:
                self._made[name] = self._fragments[name]()
            else:
                self._made[name] = grouped(self.items_of(name).values())
        return self._made[name]

    def items_of(self, group: str) -> dict[str, str]:
        """What the parts of a group ("gain/") say that say anything, by item, in the order of their forms."""
        names = [name for name in self._sentences if name.startswith(group) and self[name]]
        if not group.endswith("/") or not any(name.startswith(group) for name in self._sentences):
            raise KeyError(f"{self._session.chapter} has no sentence {group!r}")

        def place(name: str) -> int:
            sentence = self._sentences[name]
            heads = [form.partition("|")[0] for form in (*sentence.forms.values(), sentence.few)]
            head, is_item, _ = self[name].partition("|")
            return heads.index(head) if is_item else 0

        return {name.removeprefix(group): self[name] for name in sorted(names, key=place)}

    def _say(self, sentence: Sentence) -> str:
        form = sentence.form(tuple(question.answer(self._session, self._numbers) for question in sentence.questions))
        form = sentence.few if form is None else form
        if form == NOTHING:
            return self._nothing(sentence)
        others = {alias: self[name[1:]] for alias, name in sentence.poured.items() if name.startswith("@")}
        with_own = re.sub(r"\{[^}]*\}|\s", "", form)
        if with_own and any(others.get(alias) == NOTHING for alias in re.findall(r"\{(\w+)", form)):
            # In the middle of a sentence it would say nothing, badly.
            return self._nothing(sentence)
        own = {alias: name for alias, name in sentence.poured.items() if alias not in others}
        poured = {alias: Poured(self._numbers.told(name)) for alias, name in own.items()}
        return form.format(**poured, **{alias: Text(other) for alias, other in others.items()})

    def _nothing(self, sentence: Sentence) -> str:
        """That too little was measured; by itself, and not in the middle of another sentence, with the reason that a
        number has."""
        missing = (self._numbers.told(question.number).missing for question in sentence.questions)
        why = next((one for one in missing if one and one != numbers.NOT_MEASURED), "")
        return f"{NOTHING[:-1]}: {why.rstrip('.')}." if why and not sentence.part else NOTHING

    def __iter__(self) -> Iterator[str]:
        """The names of those that stand alone: no parts, and no fragment that a sentence takes up."""
        taken = {name for sentence in self._sentences.values() for name in sentence.poured.values()}
        yield from (name for name, sentence in self._sentences.items() if not sentence.part)
        yield from (name for name in self._fragments if f"@{name}" not in taken)

    def __len__(self) -> int:
        return len(list(iter(self)))


def sentences_of(session) -> Said:
    """The sentences of a session."""
    return session.once(Said)


def read_sentences(chapter: str) -> dict[str, Sentence]:
    """The sentences of a chapter, by name, in the reader's language as far as it is there. Raises UserError, with what
    is wrong and where."""
    return _read(NOTEBOOKS / chapter / "sentences.toml", tuple(settings.languages()))


@functools.cache
def _read(path: Path, languages: tuple[str, ...]) -> dict[str, Sentence]:
    entries = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    files = [path.with_suffix(f".{language}.toml") for language in languages]
    if translated := next(filter(Path.exists, files), None):
        path = translated
        for title, forms in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if unknown := set(forms) - set(entries.get(title, {})) - {"few"}:
                raise UserError(
                    f"{path.parent.name}/{path.name}: {title!r} has forms that are none: {', '.join(sorted(unknown))}."
                )
            entries[title] |= forms
    sentences = {}
    for title, entry in entries.items():
        for name, filled in _filled(path.parent.name, title, entry):
            try:
                sentences[name] = sentence(name, filled)
            except ValueError as error:
                raise UserError(f"{path.parent.name}/{path.name}: the sentence {name!r} {error}.") from None
    return sentences


def fragments(session) -> dict[str, Callable[[], str]]:
    """What no form can say: functions by name, none if the chapter has no fragments.py."""
    module = fragments_module(session.chapter)
    return module.fragments(session) if module else {}


def _listed_by(chapter: str, name: str):
    """The list of that name of a chapter's cells, or of its numbers.py."""
    cells = experiment_module(chapter)
    return getattr(cells if hasattr(cells, name) else numbers_module(chapter), name)


def _filled(chapter: str, title: str, entry: dict) -> Iterator[tuple[str, dict]]:
    """The entry for each combination of its variables, filled in everywhere."""
    variables = {
        variable: _listed_by(chapter, values) if isinstance(values, str) else values
        for variable, values in entry.get("for", {}).items()
    }
    for values in itertools.product(*variables.values()):
        given = dict(zip(variables, values))
        # A value that is a table brings further variables.
        words = {name: value for name, value in given.items() if isinstance(value, str)}
        for value in given.values():
            words |= value if isinstance(value, dict) else {}
        if (build := words.get("build")) in BUILDS:
            label, where = BUILDS[build]
            words |= {"label": label, "where": where, "Where": capital(where)}
        yield (
            words.get("name", _replaced(title, words)),
            {key: _replaced(value, words) for key, value in entry.items() if key != "for"},
        )


def _replaced(value, words: dict[str, str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [_replaced(one, words) for one in value]
    return {key: _replaced(one, words) for key, one in value.items()} if isinstance(value, dict) else value


def sentence(name: str, entry: dict, further: Set[str] = frozenset()) -> Sentence:
    """A sentence of its entry in a file. further: what whoever says it pours in, too. Raises ValueError for what is
    wrong."""
    asked = entry.get("ask", [])
    questions = tuple(map(_question, asked if isinstance(asked, list) else [asked]))
    forms = {tuple(key.split()): form for key, form in entry.items() if key not in KEYS}
    if not questions:
        if set(forms) != {("text",)}:
            raise ValueError("asks nothing, so that it needs one form, `text`")
        forms = {(): forms["text",]}
    for pattern in forms:
        if len(pattern) > len(questions) or not set(pattern) <= {*ANSWERS, "*", "-"}:
            raise ValueError(f"has a form {' '.join(pattern)!r}, which is no answer to its {len(questions)} questions")
    poured = {"value": questions[0].number} if questions else {}
    poured |= entry.get("with", {})
    made = Sentence(name, questions, poured, forms, entry.get("few", NOTHING), entry.get("part", False))
    for answers in itertools.product(*(question.answers for question in questions)):
        if made.form(answers) is None:
            raise ValueError(f"has no form for {' '.join(answers)!r}")
    with_gaps = list(itertools.product(*((*question.answers, None) for question in questions)))
    for pattern, form in forms.items():
        if not any(made.form(answers) is form for answers in with_gaps):
            raise ValueError(f"never uses its form {' '.join(pattern)!r}")
    for form in (*forms.values(), made.few):
        if unknown := set(re.findall(r"\{(\w+)", form)) - set(poured) - further:
            raise ValueError(f"pours in {', '.join(sorted(unknown))}, which is not named")
    return made


def _question(entry: dict) -> Question:
    given: dict[str, Any] = {"kind": "side", **entry}
    number = in_words(given.get("number", ""))
    if "claim" in given:
        if (given["claim"], number) not in claims.by_number(given["kind"] == "size"):
            raise ValueError(f"asks {given['claim']} for {number!r}, which the ledger does not test")
        return Question(number, claim=given["claim"], size=given["kind"] == "size")
    if given["kind"] == "there":
        return Question(number, there=True)
    if "than" in given:
        return Question(number, than=given["than"])
    if given["kind"] == "side":
        given = {"direction": "above", "interest": 0.0, **given}
    try:
        return Question(number, rule_of(given | {"number": number}))
    except ValueError as error:
        raise ValueError(f"asks by a rule that {error}") from None
