"""MkDocs's hook: pages made from headers, from the command and from files outside of docs/; links; the navigation.

HAUL_SITE_COMMANDS names the folder into which `haul man --markdown --out` has written.
"""

import os
import pathlib
import re
import sys

from mkdocs.structure.files import File, InclusionLevel

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE, HERE.parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import c_reference  # noqa: E402
import cpp_reference  # noqa: E402
import places  # noqa: E402
from header import c_header, comment, cpp_header, examples  # noqa: E402
from man.pages import LIBRARIES, has_page, names_of  # noqa: E402

ROOT = places.ROOT


def title_of(text):
    return re.search(r"^# (.*)$", text, re.M).group(1).strip("`")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Site:
    """What is on the site beside docs/: {place: text}, and lists of pages for the navigation."""

    def __init__(self):
        headers = [c_header.read(ROOT / "include" / name) for name in LIBRARIES]
        self.places = c_reference.Places(headers)
        self.pages, self.lists = {}, {}
        shown = examples.read_all()
        for header in headers:
            pages = c_reference.pages(header, headers, shown)
            self.add_list(c_reference.FOLDERS[header.name], pages)
        cpp = {}
        for name in ("haul", "atomic"):
            place = f"reference/cpp/{name}.md"
            cpp[place] = cpp_reference.page(cpp_header.read(ROOT / f"include/haul/{name}.hpp"),
                                            c_reference.Text(self.places, place))
        self.add_list("reference/cpp", cpp)
        self.add_commands()
        self.pages["reference/man.md"] = self.manual(headers)
        self.add_python()
        for path in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
            self.pages[places.place_of(path)] = read(path)
        self.list_documents()
        self.add_linked()

    def list_documents(self):
        """The guide in the order of its index, the results with the newest first."""
        index = "docs/guide/index.md"
        guide = [path for _, path in places.targets(index, read(index)) if path.startswith("docs/guide/")]
        self.lists["guide"] = [{title_of(read(path)): places.place_of(path)} for path in [index, *guide]
                               if places.place_of(path)]
        results = sorted((path.name for path in (ROOT / "docs/results").glob("2*.md")), reverse=True)
        self.lists["results"] = [{title_of(read(f"docs/results/{name}")).replace("Results of ", ""): f"results/{name}"}
                                 for name in results]

    def add_list(self, folder, pages):
        self.pages.update({place: text for place, (_, text) in pages.items()})
        self.lists[folder] = [{title: place} for place, (title, _) in pages.items()]

    def add_commands(self):
        folder = pathlib.Path(os.environ["HAUL_SITE_COMMANDS"])
        pages = {}
        for file in sorted(folder.glob("*.md")):
            if file.name == "haul-knobs.md":  # which docs/guide/knobs.md has, with their values
                continue
            text = file.read_text(encoding="utf-8").replace("(haul-knobs.md)", "(../../guide/knobs.md)")
            text = text.replace("(haul.md)", "(index.md)")
            place = "reference/cli/" + ("index.md" if file.name == "haul.md" else file.name)
            pages[place] = (title_of(text).replace("-", " "), text)
        index = "reference/cli/index.md"
        self.add_list("reference/cli", {index: pages.pop(index), **pages})

    def add_python(self):
        self.lists["reference/python"] = []
        if (ROOT / "python/haul").is_dir():
            self.pages["reference/python.md"] = "# Python\n\n::: haul\n"
            self.pages["reference/python-atomic.md"] = "# Python: remote atomics\n\n::: haul.atomic\n"
            self.lists["reference/python"] = [
                {"Python": "reference/python.md"}, {"Python: remote atomics": "reference/python-atomic.md"}]

    def manual(self, headers):
        prose = c_reference.Text(self.places, "reference/man.md")
        rows = "| page | shows |\n|---|---|\n"
        text = "# Manual pages\n\n`make install` installs these; `man haul_copy` shows one.\n\n"
        for header in headers:
            folder, overview = c_reference.FOLDERS[header.name].partition("/")[2], LIBRARIES[header.name][2]
            text += f"## {header.name}\n\n{rows}"
            text += f"| [`{overview}(3)`]({folder}/index.md) | what holds for all functions |\n"
            for group in filter(has_page, header.groups()):
                summary = prose.prose(comment.name_line(group.comment.summary))
                text += "".join(f"| {prose.link(name, f'{name}(3)')} | {summary} |\n" for name in names_of(group))
            text += "\n"
        text += f"## The command\n\n{rows}"
        for (title, place), in (entry.items() for entry in self.lists["reference/cli"]):
            summary = self.pages[place].split("\n")[2].rstrip(".")
            text += f"| [`{title.replace(' ', '-')}(1)`]({place.partition('/')[2]}) | {summary} |\n"
        return text + "| [`haul-knobs(7)`](../guide/knobs.md) | Environment variables of haul |\n"

    def add_linked(self):
        """Files outside of docs/ that a page links to, and what these link to."""
        documents = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
        documents = [path for path in documents if path != "docs/README.md"]
        documents += ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
        seen = set()
        while documents:
            path = documents.pop()
            for _, target in places.targets(path, read(path)):
                place = places.place_of(target)
                if place is None or not place.startswith("tree/") or place in seen:
                    continue
                seen.add(place)
                file = places.path_of(place)
                self.pages[place] = read(file)
                if file.endswith(".md"):
                    documents.append(file)


site = None


def expanded(nav):
    """The navigation, with its entries "folder/*" replaced by the pages of that list."""
    result = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            result.extend(site.lists[entry[:-2]])
        elif isinstance(entry, dict):
            (title, value), = entry.items()
            result.append({title: expanded(value) if isinstance(value, list) else value})
        else:
            result.append(entry)
    return result


def on_config(config):
    global site
    site = Site()
    config.nav = expanded(config.nav)
    return config


def on_files(files, config):
    for place, text in site.pages.items():
        level = InclusionLevel.NOT_IN_NAV if place.startswith("tree/") else InclusionLevel.UNDEFINED
        files.append(File.generated(config, place, content=text, inclusion=level))
    for asset in sorted((HERE / "assets").iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", content=asset.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown, page, config, files):
    place = page.file.src_uri
    path = places.path_of(place)
    if path is None or path.startswith("include/"):
        return markdown
    return places.separated(places.relink(place, path, markdown, site.places.function_link))
