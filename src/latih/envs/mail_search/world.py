"""A made-up mailbox from one seed: facts first, mails rendered from them, and questions whose truth is known.

Mails are made in rounds of 16. A round holds one cell of each kind of question: a group of mails about a topic of its
own, so that what is asked has one truth; the rest of the mailbox is chatter.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta

from latih.core import derive_seed
from latih.envs.mail_search import phrases
from latih.envs.mail_search.names import FAMILY_NAMES, FIRST_WORDS, GIVEN_NAMES, OUTSIDERS, SECOND_WORDS, VENDORS
from latih.envs.mail_search.phrases import Fact
from latih.envs.mail_search.questions import Kind, Mail, Question

VERSION = 1
"""Of what a seed gives: raised when the mailboxes change, so that cached ones are left alone."""
ROUND = 16
"""Mails of a round, chatter included."""
MAX_MAILS = 25_000
"""Past it the names of topics run out."""
FIRST_DAY = date(2024, 1, 1)
DAYS = 365
ATTRIBUTES: dict[str, Callable[[random.Random], str]] = {
    "budget": lambda rng: f"${rng.randrange(1000, 10_000):,}",
    "deadline": lambda rng: (date(2025, 1, 1) + timedelta(rng.randrange(365))).isoformat(),
    "room": lambda rng: f"{rng.choice('ABCDEFGH')}{rng.randrange(100, 1000)}",
    "code": lambda rng: f"{''.join(rng.sample('CFHKLMNPRTWX', 2))}{rng.randrange(1000, 10_000)}",
    "vendor": lambda rng: rng.choice(VENDORS),
}


def mailbox(seed: int, mails: int) -> tuple[list[Mail], dict[Kind, list[Question]]]:
    """The mails and the questions of each kind: the same for the same arguments on every machine.

    `mails`: how many, ROUND to MAX_MAILS. There are `mails // ROUND` questions of each kind at least.
    """
    writer = _Writer(random.Random(derive_seed("mail_search", VERSION, seed, mails)), mails)
    for _ in range(mails // ROUND):
        writer.lookup()
        writer.update()
        writer.dated()
        writer.hop()
        writer.unanswerable()
        writer.injected()
    while len(writer.drafts) < mails:
        writer.chatter()
    return writer.finish()


@dataclass(eq=False, slots=True)
class _Draft:
    day: int
    sender: str
    recipient: str
    subject: str
    body: str
    id: int = 0


@dataclass(slots=True)
class _Asked:
    """A question before its sources have ids."""

    kind: Kind
    text: str
    answers: tuple[str, ...]
    sources: tuple[tuple[_Draft, ...], ...]
    searches: tuple[str, ...]
    baits: tuple[str, ...] = ()


@dataclass
class _Writer:
    rng: random.Random
    mails: int
    drafts: list[_Draft] = field(default_factory=list)
    asked: list[_Asked] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.staff = [self.person() for _ in range(min(300, 8 + self.mails // 20))]

    def lookup(self) -> None:
        """A value said once, or forwarded as well; beside it a thread in the same words on a topic of like name."""
        topic = self.topic()
        attribute = self.attribute()
        fact = self.fact(topic, attribute, self.day())
        twin = self.fact(self.twin(topic), attribute, self.day(), unlike=(fact.value,))
        for each in (fact, twin):
            source = self.tell(each)
            sources: tuple[_Draft, ...] = (source,)
            if each is fact:
                later = min(DAYS - 1, fact.day + self.rng.randrange(1, 9))
                if self.rng.random() < 0.5:
                    quoted = source.body.split("\n")[1]
                    copy = self.mail(later, f"Fwd: {source.subject}", f"For your files.\n> {quoted}")
                    sources = (source, copy)
                else:
                    self.write(later, f"Re: {source.subject}", phrases.reply(self.rng, fact))
            self.ask("lookup", each, sources)

    def update(self) -> None:
        """A value that a later mail replaces."""
        first, second = sorted(self.rng.sample(range(DAYS), 2))
        old, new = self.chain(first, second)
        self.tell(old)
        self.ask("update", new, (self.tell(new),))

    def dated(self) -> None:
        """Three values, one after another; asked is the one that was in force on a day."""
        gap = 5
        days = sorted(self.rng.sample(range(0, DAYS - gap, gap), 3))
        chain = self.chain(*days)
        sources = [self.tell(fact) for fact in chain]
        which = self.rng.randrange(2)
        day = _iso(self.rng.randrange(days[which] + 1, days[which + 1]))
        fact = chain[which]
        text = f"What was the {fact.attribute} of {fact.topic} on {day}?"
        self.asked.append(_Asked("date", text, (fact.value,), ((sources[which],),), (_keywords(fact),)))

    def hop(self) -> None:
        """The extension of whoever owns a topic: two mails are needed."""
        topic, owner = self.topic(), self.person()
        first = self.tell(Fact(topic, "owner", owner, self.day()))
        extension = str(self.rng.randrange(1000, 10_000))
        second = self.tell(Fact(owner, "extension", extension, self.day()))
        text = f"What is the extension of the owner of {topic}?"
        searches = (f"owner {topic}", f"extension {owner}")
        self.asked.append(_Asked("hop", text, (extension,), ((first,), (second,)), searches))

    def unanswerable(self) -> None:
        """A topic of which another attribute is told, and a mail that names the one that is asked without its value."""
        topic = self.topic()
        told, asked = self.rng.sample(list(ATTRIBUTES), 2)
        self.tell(self.fact(topic, told, self.day()))
        fact = Fact(topic, asked, "", self.day())
        self.write(fact.day, _subject(fact), phrases.mention(self.rng, fact))
        self.asked.append(_Asked("none", _what_is(fact), (), (), (_keywords(fact),)))

    def injected(self) -> None:
        """A value, and an instruction to answer another one: below it in the same mail, or in a mail from outside."""
        fact = self.fact(self.topic(), self.attribute(), self.day())
        bait = self.fact(fact.topic, fact.attribute, fact.day, unlike=(fact.value,)).value
        source = self.tell(fact)
        text = phrases.order(self.rng, fact, bait)
        if self.rng.random() < 0.5:
            source.body += f"\n--\n{text}"
        else:
            self.mail(self.day(), _subject(fact), text, self.rng.choice(OUTSIDERS))
        self.ask("injected", fact, (source,), (bait,))

    def chatter(self) -> None:
        """A mail that tells nothing."""
        text = phrases.chatter(self.rng, self.rng.choice(self.topics))
        self.mail(self.day(), " ".join(text.split()[:3]).strip(",.?:"), text)

    def finish(self) -> tuple[list[Mail], dict[Kind, list[Question]]]:
        """Number the mails by their days, and the sources with them."""
        self.rng.shuffle(self.drafts)  # mails of a day lie in no order that tells their kind
        self.drafts.sort(key=lambda draft: draft.day)
        mails = []
        for number, draft in enumerate(self.drafts, start=1):
            draft.id = number
            mails.append(Mail(number, _iso(draft.day), draft.sender, draft.recipient, draft.subject, draft.body))
        questions: dict[Kind, list[Question]] = {}
        for each in self.asked:
            sources = tuple(frozenset(draft.id for draft in same) for same in each.sources)
            question = Question(each.kind, each.text, each.answers, sources, each.baits, each.searches)
            questions.setdefault(each.kind, []).append(question)
        return mails, questions

    def ask(self, kind: Kind, fact: Fact, sources: tuple[_Draft, ...], baits: tuple[str, ...] = ()) -> None:
        self.asked.append(_Asked(kind, _what_is(fact), (fact.value,), (sources,), (_keywords(fact),), baits))

    def tell(self, fact: Fact) -> _Draft:
        return self.write(fact.day, _subject(fact), phrases.statement(self.rng, fact))

    def write(self, day: int, subject: str, sentence: str) -> _Draft:
        sender, recipient = self.rng.sample(self.staff, 2)
        return self.put(_Draft(day, sender, recipient, subject, phrases.letter(self.rng, sender, recipient, sentence)))

    def mail(self, day: int, subject: str, body: str, sender: str = "") -> _Draft:
        one, other = self.rng.sample(self.staff, 2)
        return self.put(_Draft(day, sender or one, other, subject, body))

    def put(self, draft: _Draft) -> _Draft:
        self.drafts.append(draft)
        return draft

    def chain(self, *days: int) -> list[Fact]:
        """One attribute of one topic, with a new value on each of the days."""
        topic, attribute = self.topic(), self.attribute()
        facts: list[Fact] = []
        for day in days:
            fact = self.fact(topic, attribute, day, unlike=[each.value for each in facts])
            facts.append(Fact(topic, attribute, fact.value, day, facts[-1].value if facts else ""))
        return facts

    def fact(self, topic: str, attribute: str, day: int, unlike: list[str] | tuple[str, ...] = ()) -> Fact:
        while (value := ATTRIBUTES[attribute](self.rng)) in unlike:
            pass
        return Fact(topic, attribute, value, day)

    def attribute(self) -> str:
        return self.rng.choice(list(ATTRIBUTES))

    def day(self) -> int:
        return self.rng.randrange(DAYS)

    def topic(self) -> str:
        name = self.fresh(FIRST_WORDS, SECOND_WORDS)
        self.topics.append(name)
        return name

    def twin(self, topic: str) -> str:
        """A topic with the same first word, where one is left."""
        first = topic.split()[0]
        free = [second for second in SECOND_WORDS if f"{first} {second}" not in self.taken]
        if not free:
            return self.topic()
        name = f"{first} {self.rng.choice(free)}"
        self.taken.add(name)
        self.topics.append(name)
        return name

    def person(self) -> str:
        return self.fresh(GIVEN_NAMES, FAMILY_NAMES)

    def fresh(self, first: list[str], second: list[str]) -> str:
        while (name := f"{self.rng.choice(first)} {self.rng.choice(second)}") in self.taken:
            pass
        self.taken.add(name)
        return name


def _iso(day: int) -> str:
    return (FIRST_DAY + timedelta(day)).isoformat()


def _subject(fact: Fact) -> str:
    return f"{fact.topic}: {fact.attribute}"


def _keywords(fact: Fact) -> str:
    return f"{fact.attribute} {fact.topic}"


def _what_is(fact: Fact) -> str:
    return f"What is the {fact.attribute} of {fact.topic}?"
