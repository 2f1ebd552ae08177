"""What the page's files promise, without a browser."""

import re

import pytest

from fixture_server import WEB

FILES = sorted(path for path in WEB.iterdir() if path.is_file())


def test_first_paint_is_small():
    assert sum(path.stat().st_size for path in FILES) < 150_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_file(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 250
    foreign = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r'xmlns="[^"]*"|const SVG = "[^"]*"', "", text))
    assert [url for url in foreign if path.suffix != ".js" or "http" in url] == []
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


def test_no_inline_code_or_style():
    page = (WEB / "index.html").read_text()
    assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", page)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


def test_every_module_is_preloaded():
    page = (WEB / "index.html").read_text()
    for path in FILES:
        if path.suffix == ".js":
            assert f'"{path.name}"' in page, path.name
