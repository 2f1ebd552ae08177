"""The mutants of a C or SQL source: small changes, each of which a test should notice.

`mutants_of(path, text)` gives every one in order of its place.  A mutant replaces text[start:end].
Only bodies of functions and SQL are changed: comments, declarations and words for people are not.
Nor is what no unit test can see: a leak, a read just behind an array, another negative number for
"none", the size of a buffer, a maximum that takes the later of two equals.
"""
import collections
import re

Mutant = collections.namedtuple("Mutant", "path start end replacement")
Token = collections.namedtuple("Token", "kind text start end")

TOKEN = re.compile(r"""
    (?P<skip>  \s+ | //[^\n]* | /\*.*?\*/ | \\\n )
  | (?P<pre>   ^[ \t]*\#(?:[^\\\n]|\\.|\\\n)* )
  | (?P<string> "(?:[^"\\\n]|\\.)*" )
  | (?P<char>  '(?:[^'\\\n]|\\.)*' )
  | (?P<number> (?:0[xX][0-9a-fA-F]+ | \d+(?:\.\d*)?(?:[eE][-+]?\d+)?) [uUlLfF]* )
  | (?P<name>  [A-Za-z_]\w* )
  | (?P<op>    <<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|. )
    """, re.X | re.M | re.S)

# What becomes of an operator between two operands.
BINARY = {"==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="],
          ">=": [">", "<"], "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "*": ["/"],
          "/": ["*"], "%": ["*"], "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"],
          "^": ["|"], "+=": ["-="], "-=": ["+="], "|=": ["&="], "&=": ["|="], "*=": ["+="]}
TO_THE_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
WORDS = {"true": "false", "false": "true"}
ALLOCATES = ("malloc", "calloc", "realloc", "xmalloc", "xcalloc", "xrealloc", "xgrow")
NO_TYPE = ("return", "case", "else", "do", "goto")
RELEASES = re.compile(r"free|\w+_(free|finalize|decref)|buf_release")
# The greater or the less of two, in both ways to write it.
EXTREME = re.compile(r"([\w.>-]+(?:\[\w+\][\w.>-]*)?) ([<>]) ([\w.>-]+)"
                     r"(?= \? (?:\1 : \3|\3 : \1)[^\w.-]|\) \{\s+(?:\1 = \3|\3 = \1);)")
NO_EXPRESSION = {"if", "for", "while", "switch", "case", "default", "do", "else", "return",
                 "goto", "struct", "enum", "union", "const", "static", "unsigned", "signed",
                 "int", "char", "double", "float", "long", "short", "bool", "void", "va_list",
                 "sizeof", "typedef", "extern", "va_start", "va_end", "assert"}
SQL = [  # a pattern, and what replaces its match
    (r"\b(AND|WHERE|ON|HAVING) (?!\(|NOT EXISTS|EXISTS|CONFLICT)"
     r"((?:(?! AND | OR | ORDER | GROUP | LIMIT | THEN | WHEN | JOIN | LEFT |[()\";]).)+)",
     r"\1 (1 OR \2)"),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bsum\(", "max("), (r"\bNOT ", ""),
    (r"count\(DISTINCT ", "count("), (r"\bSELECT DISTINCT ", "SELECT "), (r" DESC\b", ""),
    (r"\bLEFT JOIN\b", "JOIN"), (r" IS NOT NULL", " IS NULL"), (r" IS NULL", " IS NOT NULL"),
    (r" < ", " <= "), (r" > ", " >= "), (r" <= ", " < "), (r" >= ", " > "),
    (r" (!=|<>) ", " = "), (r" \+ ", " - "), (r" \+ 1\b", " + 2"), (r"'(\w+)'", r"'not \1'"),
    (r"\bORDER BY (\w[\w.]*)(?=[ ,\"]|$)", r"ORDER BY -\1"),
]
IS_SQL = re.compile(r"\b(SELECT|UPDATE|INSERT|DELETE|FROM|WHERE|AND|JOIN|ORDER BY|GROUP BY|VALUES|"
                    r"EXISTS|ON CONFLICT|CASE|SET|HAVING)\b")


def tokens_of(text):
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
    return found


def matching(tokens, at, step=1):
    """The index of the bracket that closes (step 1) or opens (-1) the one at AT."""
    depth = 0
    while 0 <= at < len(tokens):
        if tokens[at].kind == "op":
            depth += tokens[at].text in "([{" and 1
            depth -= tokens[at].text in ")]}" and 1
        if depth == 0:
            return at
        at += step
    return at - step


def bodies(tokens):
    """(first, last) token of each body of a function, braces included."""
    at = 0
    while at < len(tokens):
        if tokens[at].text == "{":
            end = matching(tokens, at)
            if at > 0 and tokens[at - 1].text == ")":
                yield at, end
            at = end
        at += 1


def sql_mutants(path, start, text):
    for pattern, replacement in SQL:
        for match in re.finditer(pattern, text):
            if "BETWEEN" not in match.group():
                yield Mutant(path, start + match.start(), start + match.end(),
                             match.expand(replacement))


def is_binary(tokens, at, text):
    """Between two operands: spaces on both sides, as clang-format writes them."""
    before, after = text[tokens[at].start - 1], text[tokens[at].end]
    ends_operand = tokens[at - 1].kind in ("name", "number", "string", "char") or \
        tokens[at - 1].text in (")", "]", "++", "--")
    return before.isspace() and after.isspace() and ends_operand and \
        tokens[at - 1].text not in ("return", "case")


def after_statement(tokens, at):
    """Whether a statement may begin after token AT: not after the `:` of a conditional."""
    if tokens[at].text != ":":
        return tokens[at].text in (";", "{", "}")
    while tokens[at].text not in (";", "{", "}", "?"):
        if tokens[at].text in ("case", "default"):
            return True
        at -= 1
    return False


def statement_end(tokens, at):
    """The `;` that ends the expression statement which begins at AT; None if none begins."""
    first, second = tokens[at], tokens[at + 1]
    if not after_statement(tokens, at - 1) or first.text in NO_EXPRESSION:
        return None
    if first.text in ("break", "continue"):
        return at + 1
    pointer_to = second.text == "*" and tokens[at + 2].kind == "name"
    if not (first.kind == "name" or first.text in ("*", "++", "--", "(")) or \
       first.kind == "name" and (second.kind == "name" or second.text == ":" or pointer_to):
        return None
    while tokens[at].text != ";":
        if tokens[at].text in "([":
            at = matching(tokens, at)
        elif tokens[at].text in "{}":
            return None
        at += 1
    return at


def ternary(tokens, at, text):
    """`? a : b` becomes `? b : a`: (end, replacement)."""
    colon, end = None, at + 1
    depth = 0
    while True:
        word = tokens[end].text
        if word in "([{":
            end = matching(tokens, end)
        elif word == "?":
            depth += 1
        elif word == ":" and depth:
            depth -= 1
        elif word == ":" and colon is None:
            colon = end
        elif word in ";,)]}:":
            break
        end += 1
    if colon is None or tokens[colon - 1].text == "?":
        return None
    first = text[tokens[at].end:tokens[colon].start].strip()
    second = text[tokens[colon].end:tokens[end - 1].end].strip()
    return tokens[end - 1].end, "? %s : %s" % (second, first)


def spans_of(tokens, first, last, *words):
    """The tokens in the parentheses that follow each of WORDS."""
    found = set()
    for at in range(first, last):
        if tokens[at].text in words and tokens[at].kind == "name" and tokens[at + 1].text == "(":
            found.update(range(at, matching(tokens, at + 1)))
    return found


def sizes_in(tokens, first, last):
    """The tokens of arguments that begin with `sizeof`."""
    found = set()
    for at in range(first, last):
        if tokens[at].text == "sizeof" and tokens[at - 1].text in ("(", ","):
            while tokens[at].text not in (",", ")", ";"):
                found.add(at)
                at = matching(tokens, at) + 1 if tokens[at].text in "([" else at + 1
    return found


def lengths_in(tokens, first, last):
    """The tokens of the lengths with which arrays are declared."""
    found = set()
    for at in range(first + 2, last):
        declares = tokens[at - 1].kind == tokens[at - 2].kind == "name" and tokens[at - 2].text not in NO_TYPE
        while declares and tokens[at].text == "[":
            end = matching(tokens, at)
            found.update(range(at, end))
            at = end + 1
    return found


def changed_number(tokens, at):
    """What becomes of the number AT, or None."""
    text, before = tokens[at].text, tokens[at - 1].text
    if re.fullmatch(r"\d+", text) and before != "case":
        sentinel = before == "-" and tokens[at - 2].text in ("return", "=", "==", "!=", "?", ":")
        empty = text == "0" and before == "[" and tokens[at + 2].text not in (".", "->", "[")
        return None if sentinel or empty else str(int(text) + 1)
    return "(2 * %s)" % text if "." in text else None


def changed_operator(tokens, at, text, in_header):
    """What becomes of the operator AT."""
    word = tokens[at].text
    if word in BINARY and is_binary(tokens, at, text):
        return [o for o in BINARY[word] if not (in_header and TO_THE_BOUND.get(word) == o)]
    if word in ("++", "--") and not in_header:
        return ["--" if word == "++" else "++"]
    return [""] if word == "!" else []


def negated(path, text, tokens, at):
    """`if (x)` becomes `if (!(x))` where no operator in x is changed."""
    end = matching(tokens, at + 1)
    if not any(t.text in BINARY or t.text == "!" for t in tokens[at + 2:end]):
        words = text[tokens[at + 1].start:tokens[end].end]
        yield Mutant(path, tokens[at + 1].start, tokens[end].end, "(!%s)" % words)


def body_mutants(path, text, tokens, first, last):
    headers = spans_of(tokens, first, last, "for")
    left_out = (spans_of(tokens, first, last, "assert", *ALLOCATES) | sizes_in(tokens, first, last) |
                lengths_in(tokens, first, last))
    for at in sorted(set(range(first, last)) - left_out):
        token = tokens[at]
        begins = token.kind in ("name", "op") and at > first and at not in headers
        end = statement_end(tokens, at) if begins and not RELEASES.fullmatch(token.text) else None
        if end is not None:
            yield Mutant(path, token.start, tokens[end].end, ";")
        if token.kind == "op":
            for other in changed_operator(tokens, at, text, at in headers):
                yield Mutant(path, token.start, token.end, other)
            swapped = ternary(tokens, at, text) if token.text == "?" else None
            if swapped:
                yield Mutant(path, token.start, *swapped)
        elif token.kind == "number":
            other = changed_number(tokens, at)
            if other:
                yield Mutant(path, token.start, token.end, other)
        elif token.text in WORDS:
            yield Mutant(path, token.start, token.end, WORDS[token.text])
        elif token.text == "if":
            yield from negated(path, text, tokens, at)


def strings_of(tokens):
    """(start, text) of the strings, also those of macros."""
    for token in tokens:
        if token.kind == "string":
            yield token.start, token.text
        elif token.kind == "pre" and "#include" not in token.text:
            for match in re.finditer(r'"[^"\n]*"', token.text):
                yield token.start + match.start(), match.group()


def mutants_of(path, text):
    if path.endswith(".sql"):
        code = re.sub(r"--[^\n]*", lambda m: " " * len(m.group()), text)
        return sorted(set(sql_mutants(path, 0, code)))
    tokens = tokens_of(text)
    extremes = {match.start(2): TO_THE_BOUND[match.group(2)] for match in EXTREME.finditer(text)}
    found = set()
    for start, string in strings_of(tokens):
        if path.startswith("db/") and IS_SQL.search(string):
            found.update(sql_mutants(path, start, string))
    for first, last in bodies(tokens):
        found.update(body_mutants(path, text, tokens, first, last))
    return sorted(m for m in found if extremes.get(m.start) != m.replacement)
