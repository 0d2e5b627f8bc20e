#!/usr/bin/env python3
"""Checks a built site: every link leads to a file, and to an anchor in it; nothing is loaded from elsewhere; search
knows every page.

Usage: manual/site/check_site.py DIR
"""

import json
import pathlib
import re
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

# What a browser loads by itself, by element: its attributes.
LOADED = {"script": ["src"], "img": ["src", "srcset"], "link": ["href"], "iframe": ["src"], "source": ["src", "srcset"],
          "video": ["src", "poster"], "audio": ["src"], "object": ["data"], "embed": ["src"], "use": ["href"]}
STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])([^'\")]+)")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.ids, self.links, self.loaded = set(), [], []
        self.title, self.is_title = "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for name in ("id", "name"):
            if given.get(name):
                self.ids.add(given[name])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        for name in LOADED.get(tag, []):
            if given.get(name):
                self.loaded.extend(part.strip().split(" ")[0] for part in given[name].split(","))
        if given.get("style"):
            self.loaded.extend(STYLE.findall(given["style"]))
        self.is_title = tag == "title"

    def handle_data(self, data):
        if self.is_title:
            self.title += data

    def handle_endtag(self, tag):
        self.is_title = False


class Checker:
    def __init__(self, root):
        self.root = root
        self.pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
        self.errors = []
        self.checked = 0

    def error(self, path, text):
        self.errors.append(f"{path.relative_to(self.root)}: {text}")

    def check_link(self, path, link):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return
        self.checked += 1
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target = target / "index.html"
        if not target.is_file():
            self.error(path, f"{link} leads nowhere")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in self.pages[target].ids:
            self.error(path, f"{link}: no such anchor there")

    def check_loaded(self, path, resource):
        parts = urlsplit(resource)
        if parts.scheme == "data":
            return
        self.checked += 1
        if parts.scheme or parts.netloc:
            self.error(path, f"{resource} is loaded from elsewhere; keep it on the site")
        elif parts.path and not (path.parent / unquote(parts.path)).resolve().exists():
            self.error(path, f"{resource} is not there")

    def check_search(self):
        index = self.root / "search/search_index.js"
        if not index.is_file():
            self.error(index, "is not there")
            return
        documents = json.loads(index.read_text(encoding="utf-8").partition("=")[2])["docs"]
        known = {document["location"].partition("#")[0] for document in documents}
        for path in self.pages:
            place = path.relative_to(self.root).as_posix()
            if place != "404.html" and place not in known:
                self.error(path, "search does not know it")

    def check(self):
        for path, page in self.pages.items():
            # (The page of what is not found stands for any address.)
            if path.name != "404.html":
                for link in page.links:
                    self.check_link(path, link)
                for resource in page.loaded:
                    self.check_loaded(path, resource)
            if not page.title.strip():
                self.error(path, "has no title")
        for path in sorted(self.root.rglob("*.css")):
            for resource in STYLE.findall(path.read_text(encoding="utf-8")):
                self.check_loaded(path, resource)
        self.check_search()


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        print("usage: check_site.py DIR (a built site)", file=sys.stderr)
        return 2
    checker = Checker(pathlib.Path(sys.argv[1]).resolve())
    checker.check()
    for text in checker.errors:
        print(f"error: {text}")
    print(f"site: {len(checker.pages)} pages, {checker.checked} links, {len(checker.errors)} errors")
    return 1 if checker.errors or not checker.pages else 0


if __name__ == "__main__":
    sys.exit(main())
