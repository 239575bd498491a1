"""The list of contents of a release, in SPDX 2.3 (JSON): each package file with its digest, and the works of others in it with their
licences and versions."""
import hashlib
import json
import pathlib
import re
import time

from bundle import Package
from common import ROOT, Failure, Release, components, run, sha256

LICENCE = "Apache-2.0"
# Files of shared libraries that a kind of package file brings along: see bundle.py and image.py.
BRINGS_SHARED = re.compile(r"\.(whl|tar\.gz|oci\.tar)$")


def linked_version(text: str) -> str:
    """Returns the version of a linked work: `setup:NAME` is in tools/setup, `debian:NAME` is the installed package's."""
    kind, _, name = text.partition(":")
    if kind == "debian":
        return run("dpkg-query", "--show", "--showformat=${Version}", name).strip()
    found = re.search(rf"^{name}_version=(\S+)$", (ROOT / "tools/setup").read_text(), re.MULTILINE)
    if kind != "setup" or not found:
        raise Failure(f"components.toml: version '{text}' is neither debian:PACKAGE nor setup:NAME with NAME_version in tools/setup")
    return found[1]


def package(name: str, key: str, version: str, licence: str, home: str, copyright_text: str = "NOASSERTION", **more) -> dict:
    return {"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', key)}", "name": name, "versionInfo": version, "downloadLocation": home,
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": copyright_text, **more}


def document(files: list[pathlib.Path], bundled: dict[str, Package], in_image: dict[str, Package], release: Release) -> dict:
    """Returns the document.   bundled, in_image: {path of a shared library: Debian's package}, of trees and of the image's own layer."""
    packages, links = [], []

    def contains(outer: str, inner: str, kind: str = "CONTAINS") -> None:
        links.append({"spdxElementId": outer, "relationshipType": kind, "relatedSpdxElement": inner})

    main = package("thalweg", "thalweg", release.version, LICENCE, "NOASSERTION", "The Thalweg Authors", primaryPackagePurpose="LIBRARY")
    packages.append(main)
    for key, work in components()["linked"].items():
        packages.append(package(work["name"], f"linked-{key}", linked_version(work["version"]), work["licence"], work["home"],
                                f"Copyright {work['copyright']}"))
        contains(packages[-1]["SPDXID"], main["SPDXID"], "STATIC_LINK")
    sources: dict[str, Package] = {}
    for item in [*bundled.values(), *in_image.values()]:
        sources[item.source] = item
    for source, item in sorted(sources.items()):
        packages.append(package(source, f"debian-{source}", item.version, item.licence, item.home,
                                comment=f"Shared libraries, unchanged but for their names, from Debian 12's source package {source}; "
                                        f"`apt-get source {source}={item.version}` gets the source.",
                                externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                               "referenceLocator": f"pkg:deb/debian/{item.name}@{item.version.replace(':', '%3A')}"}]))
    for file in files:
        entry = package(file.name, f"file-{file.name}", release.version, LICENCE, "NOASSERTION", packageFileName=file.name,
                        checksums=[{"algorithm": "SHA256", "checksumValue": sha256(file)}], primaryPackagePurpose="ARCHIVE")
        packages.append(entry)
        contains("SPDXRef-DOCUMENT", entry["SPDXID"], "DESCRIBES")
        contains(entry["SPDXID"], main["SPDXID"])
        brought = {p.source for p in bundled.values()} if BRINGS_SHARED.search(file.name) else set()
        brought |= {p.source for p in in_image.values()} if file.name.endswith(".oci.tar") else set()
        for source in sorted(brought):
            contains(entry["SPDXID"], f"SPDXRef-debian-{source}")
    digest = hashlib.sha256("".join(sha256(file) for file in files).encode()).hexdigest()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"thalweg-{release.version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/thalweg-{release.version}-{digest[:32]}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)), "creators": ["Tool: tools/release"]},
            "packages": packages, "relationships": links}


def write(files: list[pathlib.Path], bundled: dict[str, Package], in_image: dict[str, Package], release: Release) -> pathlib.Path:
    out = release.out / f"thalweg-{release.version}.spdx.json"
    out.write_text(json.dumps(document(files, bundled, in_image, release), indent=1) + "\n")
    return out
