"""Reads a page of the report, for its tests."""

import html.parser as html_parser
import re

import numpy as np

SPACE = "\N{NO-BREAK SPACE}"
VOID = ("meta", "img", "input", "wbr")


class Node:
    """An element: `find` gives those below it, `text` all text in it."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    def find(self, tag=None, **wanted):
        found = []
        for child in self.children:
            if isinstance(child, Node):
                same = all(
                    child.attributes.get(k.rstrip("_").replace("_", "-")) == v
                    for k, v in wanted.items()
                )
                if (tag is None or child.tag == tag) and same:
                    found.append(child)
                found += child.find(tag, **wanted)
        return found

    @property
    def text(self):
        parts = (c.text if isinstance(c, Node) else c for c in self.children)
        return re.sub(r"\s+", " ", "".join(parts)).strip()


def read(text):
    """Parses a page; raises if an element is not closed as it was opened."""
    root = Node("root", {})
    stack = [root]

    class Builder(html_parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            node = Node(tag, dict(attributes))
            stack[-1].children.append(node)
            if tag not in VOID:
                stack.append(node)

        def handle_startendtag(self, tag, attributes):
            stack[-1].children.append(Node(tag, dict(attributes)))

        def handle_endtag(self, tag):
            assert stack.pop().tag == tag

        def handle_data(self, data):
            stack[-1].children.append(data)

    builder = Builder(convert_charrefs=True)
    builder.feed(text)
    builder.close()
    assert stack == [root]
    return root


def table(page, name):
    """Returns the rows of a table's body as tuples of texts."""
    (found,) = page.find("table", id=f"table-{name}")
    (body,) = found.find("tbody")
    return [
        tuple(cell.text for cell in row.children if isinstance(cell, Node))
        for row in body.find("tr")
    ]


def headers(page, name):
    (found,) = page.find("table", id=f"table-{name}")
    return [one.text for one in found.find("thead")[0].find("th")]


def pictures(rows):
    images = np.zeros((len(rows), 28, 28, 3), "uint8")
    images[:] = np.asarray(rows)[:, None, None, None] % 256
    return images
