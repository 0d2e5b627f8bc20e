#!/usr/bin/env python3
"""Writes what a build of haul is made of: a software bill of materials in SPDX 2.3 (JSON).

Facts only: the programs and libraries of the build and their sums; the libraries that each needs (its ELF header says
so) and the headers that were compiled in (ninja says so), each as the Debian package that owns it, with its version and
the licence that its copyright file declares. The same build gives the same bytes; SOURCE_DATE_EPOCH dates it, else the
commit does.

Usage: packaging/sbom.py BUILD OUTPUT
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Debian's short names of licences, where SPDX has others.
LICENCES = {
    "Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "BSD-2-Clause": "BSD-2-Clause", "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-Clause": "BSD-3-Clause", "BSD-3-clause": "BSD-3-Clause", "Expat": "MIT", "MIT": "MIT",
    "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only", "GPL-3+": "GPL-3.0-or-later",
    "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3+": "LGPL-3.0-or-later", "Zlib": "Zlib",
}


class Unknown(Exception):
    """A fact that cannot be had; the text says which and what to do."""


def output_of(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unknown(f"{command[0]} gives no answer ({error}); build with ninja on Debian, where dpkg, binutils and "
                      "ninja are installed") from error


def products(build):
    """The programs and shared libraries that `make install` installs, links left out."""
    found = [build / "bin" / name for name in ("haul", "bcisim")] + sorted((build / "lib").glob("*.so*"))
    found = [path for path in found if path.is_file() and not path.is_symlink()]
    if not any(path.name.startswith("libhaul.so") for path in found):
        raise Unknown(f"there is no libhaul.so below {build}; `make` builds it")
    return found


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", str(path)))


class Packages:
    """The Debian packages that files belong to."""

    def __init__(self):
        self.owners = {}

    def own(self, paths):
        """The packages of these files, each asked for once."""
        self.ask(sorted(set(paths) - self.owners.keys()))
        # /lib is a link to /usr/lib, and some packages still name their files by it.
        self.ask(sorted(path.removeprefix("/usr") for path in set(paths) - self.owners.keys()))
        owned = {path: self.owners.get(path) or self.owners.get(path.removeprefix("/usr")) for path in paths}
        for path, owner in owned.items():
            if owner is None:
                raise Unknown(f"{path} belongs to no Debian package; build against packages alone")
        return set(owned.values())

    def ask(self, paths):
        for begin in range(0, len(paths), 500):
            # (dpkg fails for what no package owns.)
            said = subprocess.run(["dpkg", "-S", *paths[begin:begin + 500]], capture_output=True, text=True, check=False)
            for line in said.stdout.splitlines():
                owner, _, path = line.partition(": ")
                self.owners[path] = owner.split(",")[0]

    @staticmethod
    def describe(owner):
        name, version, architecture, source = output_of(
            "dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}\t${source:Package}", owner).split("\t")
        return {
            "SPDXID": spdx_id("Package", name),
            "name": name,
            "versionInfo": version,
            "supplier": "Organization: Debian",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION",
            **licence_fields(name),
            "copyrightText": "NOASSERTION",
            "sourceInfo": f"built from the Debian source package {source}",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}",
            }],
        }


def licences_of(package):
    """The licences that a machine-readable copyright file names for the files of others than Debian."""
    path = pathlib.Path("/usr/share/doc", package, "copyright")
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    stanzas = re.findall(r"^Files:((?:.+\n)+)", text, re.MULTILINE)
    names = [re.search(r"^License:\s*(.+?)\s*$", stanza, re.MULTILINE) for stanza in stanzas
             if not re.match(r"\s*debian/\S*\n\S", stanza)]
    return sorted({name.group(1) for name in names if name})


def licence_fields(package):
    """SPDX' name where there is one licence; several may be those of other parts of the sources."""
    names = licences_of(package)
    return {
        "licenseDeclared": LICENCES.get(names[0], "NOASSERTION") if len(names) == 1 else "NOASSERTION",
        "licenseComments": f"/usr/share/doc/{package}/copyright of Debian names: {', '.join(names)}" if names else
                           f"/usr/share/doc/{package}/copyright of Debian has them, in words",
    }


def spdx_id(kind, name):
    return f"SPDXRef-{kind}-{re.sub('[^A-Za-z0-9.-]', '-', name)}"


def headers(build):
    """The headers outside of haul that its sources, but for the tests, were compiled with."""
    objects = re.split(r"^(?=\S)", output_of("ninja", "-C", str(build), "-t", "deps"), flags=re.MULTILINE)
    found = [path for entry in objects if not entry.startswith("tests/")
             for path in re.findall(r"^ +(/usr/\S+)$", entry, re.MULTILINE)]
    if not found:
        raise Unknown(f"ninja knows no headers of {build}; build it with ninja")
    return sorted({os.path.realpath(path) for path in found})


def created():
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or output_of("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def file_entry(path, build):
    content = path.read_bytes()
    return {
        "SPDXID": spdx_id("File", path.name),
        "fileName": f"./{path.relative_to(build)}",
        "fileTypes": ["BINARY"],
        "checksums": [{"algorithm": name.upper(), "checksumValue": hashlib.new(name, content).hexdigest()}
                      for name in ("sha1", "sha256")],
        "licenseConcluded": "BSD-3-Clause",
        "copyrightText": "Copyright (c) 2026, haul developers",
    }


def document(build):
    version = output_of(str(ROOT / "scripts" / "version.sh")).strip()
    where = dict(re.findall(r"^\s*(\S+) \(.*x86-64.*\) => (\S+)$", output_of("/sbin/ldconfig", "-p"), re.MULTILINE))
    packages, built, relations = Packages(), products(build), []
    own = {path.name for path in (build / "lib").glob("*.so*")}
    owners = set()

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    haul = spdx_id("Package", "haul")
    relate("SPDXRef-DOCUMENT", "DESCRIBES", haul)
    for path in built:
        relate(haul, "CONTAINS", spdx_id("File", path.name))
        for library in needed(path):
            if library in own:
                target = (build / "lib" / library).resolve().name
                relate(spdx_id("File", path.name), "DYNAMIC_LINK", spdx_id("File", target))
                continue
            if library not in where:
                raise Unknown(f"{path.name} needs {library}, which is not installed; install what it was built with")
            (owner,) = packages.own([os.path.realpath(where[library])])
            owners.add(owner)
            relate(spdx_id("File", path.name), "DYNAMIC_LINK", spdx_id("Package", owner.split(":")[0]))
    # What the compiler puts into haul's files: headers, and its own library where haul is to need libc alone.
    compiled_in = packages.own(headers(build))
    for owner in sorted(compiled_in):
        relate(spdx_id("Package", owner.split(":")[0]), "BUILD_DEPENDENCY_OF", haul)
    # (libstdc++.a lies in the package of its headers.)
    for owner in sorted(compiled_in):
        if owner.startswith("libstdc++-"):
            relate(haul, "STATIC_LINK", spdx_id("Package", owner.split(":")[0]))
    described = [packages.describe(owner) for owner in sorted(owners | compiled_in)]
    files = [file_entry(path, build) for path in built]
    sums = sorted(entry["checksums"][0]["checksumValue"] for entry in files)
    result = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"haul-{version}",
        "creationInfo": {"created": created(), "creators": [f"Tool: haul-sbom-{version}"]},
        "packages": [{
            "SPDXID": haul, "name": "haul", "versionInfo": version, "supplier": "Organization: haul developers",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": True,
            "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()},
            "licenseConcluded": "BSD-3-Clause",
            "licenseDeclared": "BSD-3-Clause", "copyrightText": "Copyright (c) 2026, haul developers",
        }, *described],
        "files": files,
        "relationships": relations,
    }
    # A document's name space is its own: named by its content.
    result["documentNamespace"] = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(result)).urn
    return result


def main():
    if len(sys.argv) != 3:
        print("usage: packaging/sbom.py BUILD OUTPUT", file=sys.stderr)
        return 2
    try:
        found = document(pathlib.Path(sys.argv[1]).resolve())
        pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except (Unknown, OSError) as error:
        print(f"haul: {error}", file=sys.stderr)
        return 1
    print(f"haul: {sys.argv[2]}: {len(found['files'])} files of haul, {len(found['packages']) - 1} Debian packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
