"""Asks two daemons, which serve copies of one data folder, the same; compares what they say."""
import json
import re

import masks
import questions
import refused
from daemons import Question
from differences import DEFECT, PAGE

STATIC = re.compile(r"/[\w-]+\.(js|css|svg|html|png|ico)$")  # files of the page


class Pair:
    def __init__(self, old, new, start, differences):
        self.old, self.new, self.start, self.differences = old, new, start, differences
        self.unlike = set()  # paths whose answers are not the same bytes, as some must not be

    def ask(self, question):
        """The old daemon's answer, after both were compared."""
        old, new = self.old.ask(question), self.new.ask(question)
        if old.status in (201, 202):
            raise RuntimeError(f"{question} makes something: it does not belong here")
        headers = "".join(f" {name}: {value!r}" for name, value in question.headers.items())
        body = f" {shown(question.body)}" if question.body is not None else ""
        self.compare(f"{question.method} {question.path}{headers}{body}"[:200], question, old, new)
        return old

    def compare(self, where, question, old, new):
        self.differences.compared["requests"] += 1
        if old.body != new.body or old.status != new.status:
            self.unlike.add(question.path)
        if STATIC.search(question.path) and 200 in (old.status, new.status):
            if question.path in self.unlike:
                self.differences.add(PAGE, where, question.path)
                return
        if old.status != new.status:
            self.differences.add(DEFECT, where, f"status {old.status} → {new.status}",
                                 shown(old.body), shown(new.body))
            return
        kind, other = (dict(answer.headers).get("Content-Type", "") for answer in (old, new))
        if old.body != new.body and kind == other:
            self.body(where, question, kind, old, new)
        before, after = (self.kept(question, answer.headers) for answer in (old, new))
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                self.differences.add(DEFECT, where, f"header {name}", before.get(name, ""),
                                     after.get(name, ""))

    def kept(self, question, headers):
        """Those that are to be the same."""
        left_out = {*masks.HEADERS, *(masks.OF_THE_BODY if question.path in self.unlike else ())}
        return {name: [value for other, value in headers if other == name]
                for name, _ in headers if name not in left_out}

    def body(self, where, question, kind, old, new):
        """Compares two bodies that are not the same bytes."""
        old_text, new_text = (masks.masked_body(shown(answer.body), self.start)
                              for answer in (old, new))
        if old_text == new_text:
            return
        if "json" in kind:
            described = question.path.startswith("/openapi")
            if described:
                old_text, new_text = resolved(old_text), resolved(new_text)
            self.differences.json(where, old_text, new_text, free=described)
        elif kind.startswith("text/csv"):
            self.differences.csv(where, old_text, new_text)
        elif kind.startswith("text/html"):
            self.differences.add(PAGE, where, question.path)
        else:
            self.differences.text(where, old_text, new_text)

    def raw(self, data):
        """Bytes that need not be one request."""
        old, new = (masks.masked_body(daemon.ask_raw(data), self.start)
                    for daemon in (self.old, self.new))
        self.differences.compared["requests"] += 1
        if old != new:
            self.differences.text(f"bytes {data[:100]!r}", old, new)

    def follow(self, path):
        """A list in pages, to its end."""
        while path:
            link = dict(self.ask(Question("GET", path)).headers).get("Link", "")
            path = re.match(r"<([^>]+)>|", link)[1]

    def events(self, last):
        """What listeners get who come back: nothing, some, too many."""
        for after in (last, last - 1, last - 900, 0, last + 5):
            until = rb"id: %d\n" % last + (rb"\n" if after == last else rb"event: .*\ndata: .*\n\n")
            old, new = (daemon.events(after, until) for daemon in (self.old, self.new))
            self.differences.compared["requests"] += 1
            if old != new:
                self.differences.text(f"GET /v1/events after {after} of {last}", old, new)


def shown(body):
    return body.decode(errors="replace") if isinstance(body, bytes) else body


def resolved(text):
    """A description with what it refers to in place: how it is cut into parts says nothing."""
    document = json.loads(text)

    def resolve(value):
        if isinstance(value, list):
            return [resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            found = document
            for name in value["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            return resolve(found)
        return {name: resolve(member) for name, member in value.items()}
    return json.dumps({name: resolve(value) for name, value in document.items()
                       if name != "components"})


def compare(old, new, start, differences):
    """OLD and NEW are started, on copies; nothing is left for them to do."""
    pair = Pair(old, new, start, differences)
    known = questions.Known(old)
    for number, question in enumerate(questions.all_of(known)):
        answer = pair.ask(question)
        tag = dict(answer.headers).get("ETag")
        if number % 8 == 0 and tag and question.path not in pair.unlike:
            pair.ask(Question("GET", question.path, {**question.headers, "If-None-Match": tag}))
    for path in questions.LISTS:
        pair.follow(path)
    for data in refused.HEADS:
        pair.raw(data)
    pair.events(int(known.column("SELECT max(id) FROM event")[0]))
