#!/usr/bin/env python3
"""One dialect for all C, CUDA and C++ of the repository.  Prints each violation.

  braces        the body of if, else, for, while and do is a block
  sizeof        `sizeof object`; parentheses are for types and for expressions
  declarations  in C, the declarations of a block come before its statements

It reads tokens, not the language: what macros expand to is not seen, and preprocessor lines
are skipped.
"""
import os
import re
import sys

FOLDERS = ("daemon", "workloads", "cuda", "api", "db", "tests")
TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<hash>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
  | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^=!<>]=|&&|\|\||::|.)
""", re.X | re.S | re.M)
QUALIFIERS = {"static", "const", "volatile", "extern", "register", "restrict", "_Thread_local",
              "_Alignas", "_Atomic", "inline", "typedef"}
TYPES = {"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool",
         "bool", "struct", "union", "enum"}
DECLARING = QUALIFIERS | TYPES | {"_Static_assert", "static_assert"}
STATEMENTS = {"return", "goto", "if", "for", "while", "do", "switch", "else", "break", "continue",
              "sizeof"}
CLOSES = {"(": ")", "[": "]", "{": "}"}


class Source:
    """The tokens of one file, the line of each, and for each bracket the place of its partner."""

    def __init__(self, path):
        self.path = path
        self.tokens, self.lines, self.partner = [], [], {}
        with open(path, encoding="utf-8") as file:
            text = file.read()
        opened, line, seen = [], 1, 0
        for match in TOKEN.finditer(text):
            line += text.count("\n", seen, match.start())
            seen = match.start()
            if match.lastgroup in ("skip", "hash"):
                continue
            token = match.group()
            place = len(self.tokens)
            if token in CLOSES:
                opened.append(place)
            elif token in CLOSES.values() and opened:
                self.partner[place] = opened.pop()
                self.partner[self.partner[place]] = place
            self.tokens.append(token)
            self.lines.append(line)

    def at(self, place):
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""

    def behind(self, place):
        """The place behind the parentheses that open at PLACE."""
        return self.partner.get(place, place) + 1

    def complain(self, place, what):
        return f"{self.path}:{self.lines[place]}: {what}"


def type_names(sources, classes):
    """Names that typedefs gave to types; with CLASSES also templates, classes and structs."""
    names = set(TYPES)
    for source in sources:
        tokens = source.tokens
        for i, token in enumerate(tokens):
            if token in ("typename", "class", "using", "struct", "union", "enum"):
                if classes:
                    names.add(source.at(i + 1))
            elif token == "typedef":
                end = i
                while source.at(end) != ";" and end < len(tokens):
                    end = source.behind(end) if source.at(end) == "{" else end + 1
                text = re.sub(r"\{.*\}|__attribute__.*", "", " ".join(tokens[i + 1:end]))
                # typedef R (*NAME)(…), typedef R NAME(…), typedef R NAME[…], typedef R NAME
                found = re.search(r"\( \* (\w+) \)", text) or \
                    re.search(r"(\w+) ?(?=[([]|$)", text)
                names.add(found.group(1))
            elif source.at(i - 1) in (";", "{", "}") and declares(source, i):
                names.add(token)  # a library's
    return names


def is_type(words, names):
    words = [word for word in words if word not in QUALIFIERS]
    return bool(words) and (words[0] in names or words[0].endswith("_t") or "::" in words[:2]
                            or words[0][0].isupper())  # libraries' types, and macros


def braces(source):
    for i, token in enumerate(source.tokens):
        if token in ("if", "for", "while", "switch") and source.at(i + 1) in ("(", "constexpr"):
            start = i + (2 if source.at(i + 1) == "constexpr" else 1)
            body = source.behind(start)
            ends_do = token == "while" and source.at(i - 1) == "}" and source.at(body) == ";"
            if source.at(body) != "{" and not ends_do:
                yield source.complain(i, f"the body of this '{token}' has no braces")
        elif token in ("else", "do") and source.at(i + 1) not in ("{", "if"):
            yield source.complain(i, f"the body of this '{token}' has no braces")


def sizeofs(source, names):
    for i, token in enumerate(source.tokens):
        if token != "sizeof" or source.at(i + 1) != "(":
            continue
        inside = source.tokens[i + 2:source.behind(i + 1) - 1]
        operand = " ".join(inside)
        # What binds as tightly as sizeof needs no parentheses: p, *p, p->m, a[0], "text".
        unary = re.fullmatch(r'[*&]* ?(\w+|"[^"]*")( ?(\.|->) ?\w+| ?\[[^\]]*\])*', operand)
        if unary and not is_type(inside, names):
            yield source.complain(i, f"sizeof({operand.replace(' ', '')}): an object needs no "
                                     "parentheses")


def opens_code(source, place):
    """Whether the brace at PLACE begins statements, rather than members or values."""
    before = source.at(place - 1)
    if before in ("else", "do", ":", ";", "{", "}"):
        return True
    if before != ")":
        return False
    callee = source.at(source.partner.get(place - 1, 0) - 1)
    return bool(re.fullmatch(r"\w+|\)", callee)) and callee not in ("return", "sizeof")


def declares(source, place):
    """Whether the statement at PLACE is a declaration: `TYPE name`, `TYPE *name`, MACRO(…) name.

    No product of two names is a statement, so TYPE may be any name.
    """
    token = source.at(place)
    if token in DECLARING:
        return True
    if not re.fullmatch(r"[A-Za-z_]\w*", token) or token in STATEMENTS:
        return False
    following = source.behind(place + 1) if source.at(place + 1) == "(" else place + 1
    while source.at(following) in ("*", "const", "restrict"):
        following += 1
    return bool(re.fullmatch(r"[A-Za-z_]\w*", source.at(following))) and \
        source.at(following + 1) in ("=", ";", ",", "[")


def statement_end(source, place):
    """The place behind the simple statement, or the head of the compound one, at PLACE."""
    while place < len(source.tokens) and source.at(place) not in (";", "{", "}"):
        place = source.behind(place) if source.at(place) in ("(", "[") else place + 1
        if source.at(place) == "{" and not opens_code(source, place):
            place = source.behind(place)
    return place + 1 if source.at(place) == ";" else place


def declarations(source):
    for i, token in enumerate(source.tokens):
        if token != "{" or not opens_code(source, i) or i not in source.partner:
            continue
        place, end, stated = i + 1, source.partner[i], False
        while place < end:
            if source.at(place) in ("{", ";"):
                stated = stated or source.at(place) == "{"
                place = source.behind(place) if source.at(place) == "{" else place + 1
            elif source.at(place) in ("case", "default") or source.at(place + 1) == ":":
                while source.at(place) != ":":
                    place += 1
                place += 1
            elif declares(source, place):
                if stated:
                    yield source.complain(place, "a declaration after a statement of its block")
                place = statement_end(source, place)
            else:
                stated = True
                # `else` and the `while` of a do come behind a block and end where they end.
                place = max(statement_end(source, place), place + 1)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    paths = sorted(f"{folder}/{name}" for top in FOLDERS for folder, _, names in os.walk(top)
                   for name in names if name.endswith((".c", ".h", ".cu", ".cpp")))
    sources = [Source(path) for path in paths]
    c_names = type_names(sources, classes=False)
    names = type_names([s for s in sources if not s.path.endswith(".c")], classes=True)
    bad = []
    for source in sources:
        bad += braces(source)
        bad += sizeofs(source, c_names if source.path.endswith(".c") else names)
        if source.path.endswith(".c"):
            bad += declarations(source)
    print("\n".join(bad) or "  ok   dialect")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
