"""What differs between two texts, documents or tables, and how much it matters.

Everything that differs is a defect, but for three kinds that are told apart: a sentence that
says the same facts in other words, the schema of the database, and the files of the page."""
import collections
import csv
import io
import json
import re

DEFECT, SENTENCE, SCHEMA, PAGE = "defect", "sentence", "schema", "page"
# Members and columns that hold sentences, in answers and in catalogues.
SENTENCES = {"reason", "detail", "title", "message", "summary", "description", "cause", "models",
             "no_control", "weight_sum", "loss", "problem_texts", "problems"}
# What a sentence may not lose or change: names in quotes, and numbers, ids, paths, pointers.
QUOTED = re.compile(r"(?<!\w)'([^'\n]*)'|\"([^\"\n]*)\"")
FACT = re.compile(r"[\w.:+%/*-]*[\d/_][\w.:+%/*-]*")
# Words that are facts, too, in what is laid out for people.
VERDICTS = re.compile(r"\b(reproducible|varies|inconclusive|unmeasured|failing|stale|unsupported|"
                      r"completed|crashed|timeout|lost|infra|invalid|cancelled)\b", re.I)


def keeps_facts(old, new):
    """Whether the sentence NEW has all facts of OLD; it may have more."""
    facts = [collections.Counter(fact.strip(".:,") for fact in FACT.findall(text))
             for text in (old, new)]
    return not facts[0] - facts[1] and all((one or other) in new
                                           for one, other in QUOTED.findall(old))


def verdicts(text):
    return collections.Counter(VERDICTS.findall(text.lower()))


class Number(str):
    """As it is spelt: 1 is not 1.0."""


def parse(text):
    """The document; repeated members are refused."""
    def members(pairs):
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError(f"repeated members: {[name for name, _ in pairs]}")
        return dict(pairs)
    return json.loads(text, object_pairs_hook=members, parse_int=Number, parse_float=Number)


class Differences:
    """All that were found, those of one kind together."""

    def __init__(self):
        self.found = {}  # (kind, what) → [where, old, new, {place: how many}]
        self.compared = collections.Counter()  # what was compared → how many

    def add(self, kind, where, what, old="", new=""):
        entry = self.found.setdefault((kind, re.sub(r"/\d+\b", "/*", what)),
                                      (where, old, new, collections.Counter()))
        entry[3][place_of(where)] += 1

    def count(self, *kinds):
        return sum(sum(entry[3].values()) for (kind, _), entry in self.found.items()
                   if kind in kinds)

    def lines(self, *kinds):
        for (kind, what), (where, old, new, places) in self.found.items():
            if kind in kinds:
                yield f"{kind}: {what}"
                yield "    in " + ", ".join(f"{place} ({count})" for place, count in places.items())
                yield f"    as {shortened(where)}"
                for name, value in ("old", old), ("new", new):
                    if value != "":
                        yield f"    {name}: {shortened(value)}"

    def sentence(self, where, what, old, new):
        """Two texts that differ, where sentences may."""
        self.add(SENTENCE if keeps_facts(old, new) else DEFECT, where, what, old, new)

    def document(self, where, old, new, free=False):
        """Two parsed documents; where FREE, the order of members and of lists of scalars says
        nothing."""
        self._value(where, "", old, new, False, free)

    def _value(self, where, pointer, old, new, is_sentence, free):
        if type(old) is not type(new):
            self.add(DEFECT, where, f"{pointer or '/'}: another type", spelt(old), spelt(new))
        elif isinstance(old, dict):
            for name in [name for name in old if name not in new]:
                self.add(DEFECT, where, f"{pointer}/{name}: is gone", spelt(old[name]))
            for name in [name for name in new if name not in old]:
                self.add(DEFECT, where, f"{pointer}/{name}: is new", "", spelt(new[name]))
            both = [name for name in old if name in new]
            if not free and both != [name for name in new if name in old]:
                self.add(DEFECT, where, f"{pointer or '/'}: another order of members",
                         list(old), list(new))
            for name in both:
                self._value(where, f"{pointer}/{name}", old[name], new[name],
                            is_sentence or name in SENTENCES, free)
        elif isinstance(old, list):
            if free and not any(isinstance(item, (dict, list)) for item in old + new):
                old, new = sorted(map(str, old)), sorted(map(str, new))
            if len(old) != len(new):
                self.add(DEFECT, where, f"{pointer or '/'}: another length", spelt(old),
                         spelt(new))
            for i, (one, other) in enumerate(zip(old, new)):
                self._value(where, f"{pointer}/{i}", one, other, is_sentence, free)
        elif old != new:
            if is_sentence and free:  # of a description, all of them are prose
                self.add(SENTENCE, where, " … /".join(pointer.rsplit("/", 2)[1:]), old, new)
            elif is_sentence and isinstance(old, str):
                self.sentence(where, pointer, old, new)
            else:
                self.add(DEFECT, where, pointer or "/", spelt(old), spelt(new))

    def json(self, where, old, new, free=False):
        """Two texts in JSON that are not the same bytes."""
        try:
            before, after = parse(old), parse(new)
        except ValueError as error:
            self.add(DEFECT, where, "not JSON", old, f"{new} ({error})")
            return
        if before == after and not free and list_members(before) == list_members(after):
            self.add(DEFECT, where, "the same document, spelt otherwise", old, new)
        self.document(where, before, after, free)

    def csv(self, where, old, new):
        before, after = (list(csv.reader(io.StringIO(text))) for text in (old, new))
        if before[:1] != after[:1] or len(before) != len(after):
            self.add(DEFECT, where, "other columns or another number of lines",
                     f"{len(before)} lines of {before[:1]}", f"{len(after)} lines of {after[:1]}")
            return
        if before == after:
            self.add(DEFECT, where, "the same table, spelt otherwise", old, new)
        for one, other in zip(before[1:], after[1:]):
            for name, value, changed in zip(before[0], one, other):
                if value != changed and name.rpartition(".")[2] in SENTENCES:
                    self.sentence(where, f"column {name}", value, changed)
                elif value != changed:
                    self.add(DEFECT, where, f"column {name}", value, changed)
            if len(one) != len(other):
                self.add(DEFECT, where, "a line of another length", one, other)

    def text(self, where, old, new):
        """What is laid out for people, line by line where there are as many."""
        before, after = old.split("\n"), new.split("\n")
        if len(before) != len(after):
            before, after = [old], [new]
        for one, other in zip(before, after):
            if one != other and verdicts(one) != verdicts(other):
                self.add(DEFECT, where, "text: another verdict", one, other)
            elif one != other:
                changed = " ".join(sorted(words(one) ^ words(other))[:8])
                self.sentence(where, f"text: {changed or 'numbers'}", one, other)


def place_of(where):
    """A request without ids, format and query; the begin of what is none."""
    request = re.match(r"([A-Z]+) (/[^ ?]*)", where)
    if not request:
        return where.partition(": {")[0].partition("{")[0][:60]
    path = re.sub(r"\.(txt|csv|json)$", "", request[2])
    return request[1] + " " + re.sub(r"^(/v1/[^/]+|/problems)/[^/]+", r"\1/{}", path)


def words(line):
    """Without numbers and ids."""
    return set(re.sub(r"\w*\d\w*", "#", line).split())


def list_members(value):
    """Names of members in order, wherever they stand."""
    if isinstance(value, dict):
        return [(name, list_members(member)) for name, member in value.items()]
    return [list_members(item) for item in value] if isinstance(value, list) else None


def spelt(value):
    return json.dumps(value, ensure_ascii=False)


def shortened(value, most=300):
    text = str(value)
    return text if len(text) <= most else f"{text[:most]} … ({len(text)} characters)"
