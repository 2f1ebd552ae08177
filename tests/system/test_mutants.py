"""The changes that `make mutate` plants: each where a test could notice it, and no others."""
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../mutate"))
from mutants import mutants_of  # noqa: E402


def changed(path, text):
    return {text[:m.start] + m.replacement + text[m.end:] for m in mutants_of(path, text)}


def of_body(body):
    """The bodies that become of BODY."""
    return {text[len("int f(int a)\n{\n    "):-len("\n}\n")]
            for text in changed("x.c", "int f(int a)\n{\n    %s\n}\n" % body)}


@pytest.mark.parametrize("body, expected", [
    ("return a < b;", {"return a <= b;", "return a >= b;"}),
    ("return a == b;", {"return a != b;"}),
    ("return a && b;", {"return a || b;"}),
    ("return !a;", {"return a;"}),
    ("return -a;", set()),
    ("a += b;", {";", "a -= b;"}),
    ("f(a, b);", {";"}),
    ("a = true;", {";", "a = false;"}),
    ("a = 7;", {";", "a = 8;"}),
    ("a = 0.5;", {";", "a = (2 * 0.5);"}),
    ("return a ? b : c;", {"return a ? c : b;"}),
    ("if (a) {\n    }", {"if (!(a)) {\n    }"}),
    ("while (a) {\n        break;\n    }", {"while (a) {\n        ;\n    }"}),
    ("i++;", {";", "i--;"}),
])
def test_what_is_changed(body, expected):
    assert of_body(body) == expected


@pytest.mark.parametrize("body", [
    "return -1;",                                   # another word for "none"
    "free(a);", "buf_release(&a);",                 # leaks
    "assert(a == b);",
    "return f(sizeof a - b, c);",                   # the size of a buffer
    "return xcalloc(1, b);",
    "return a[0];",                                 # whether a text is empty
    "return a > b ? a : b;",                        # only the two below: equals are equal
    "int b;", "struct s *b;", "goto out;",          # declarations
    'return f("a < b");',                           # words for people
])
def test_what_is_left_alone(body):
    assert of_body(body) - {"return a <= b ? a : b;", "return a > b ? b : a;"} == set()


def test_a_loop_reads_no_further():
    assert of_body("for (int i = 0; i < a; i++) {\n    }") == {
        "for (int i = 1; i < a; i++) {\n    }", "for (int i = 0; i >= a; i++) {\n    }"}


def test_comments_and_what_is_outside_of_bodies_stay():
    assert changed("x.c", "/* 1 + 2 */\n#define N 4\nstatic const int n = 1 + 2;\n") == set()


@pytest.mark.parametrize("sql, expected", [
    ("SELECT a FROM t WHERE b = ?", {"SELECT a FROM t WHERE (1 OR b = ?)"}),
    ("SELECT max(a) FROM t", {"SELECT min(a) FROM t"}),
    ("SELECT count(DISTINCT a) FROM t", {"SELECT count(a) FROM t"}),
    ("SELECT a FROM t ORDER BY b DESC",
     {"SELECT a FROM t ORDER BY b", "SELECT a FROM t ORDER BY -b DESC"}),
])
def test_queries(sql, expected):
    text = 'static const char q[] = "%s";\n'
    assert changed("db/x.c", text % sql) == {text % e for e in expected}
    assert changed("api/x.c", text % sql) == set()
    assert changed("db/x.sql", sql + ";\n") == {e + ";\n" for e in expected}
