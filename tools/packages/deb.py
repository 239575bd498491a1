"""Debian packages, from debian/control and debian/*.install, made by dpkg-deb without a build in debhelper's ways.

The tree is installed below /usr. dpkg-shlibdeps computes the dependencies on shared libraries from the files themselves."""
import email.utils
import hashlib
import os
import pathlib
import re
import tempfile
import textwrap

from common import HERE, ROOT, Failure, Release, copy, files_below, is_elf, packed, run

DEBIAN = HERE / "debian"
OWN_LIBRARY = "libthalweg1"


def stanzas() -> list[dict[str, str]]:
    """Returns the stanzas of debian/control: the source's, then one for each package."""
    text = re.sub(r"^#.*\n", "", (DEBIAN / "control").read_text(), flags=re.MULTILINE)
    return [dict(re.findall(r"^([\w-]+): ?(.*(?:\n .*)*)", stanza, re.MULTILINE)) for stanza in text.strip().split("\n\n")]


def files_of(package: str, prefix: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    """Returns (file of the tree, path below /usr) for each file of a package; empty if the build left its plugin out."""
    found = []
    for line in (DEBIAN / f"{package}.install").read_text().splitlines():
        pattern, _, target = line.partition(" -> ")
        matches = sorted(prefix.glob(pattern))
        if not matches:
            if package.startswith("thalweg-plugin-"):
                return []
            raise Failure(f"package {package}: nothing installed matches {pattern}")
        for match in matches:
            for file in [match] if match.is_file() or match.is_symlink() else files_below(match):
                place = file.relative_to(prefix).as_posix()
                found.append((file, target + place.removeprefix(pattern) if target else place))
    return found


def copyright_text() -> str:
    """Returns the file `copyright`: the texts of licences come from THIRD_PARTY.md."""
    page = (ROOT / "THIRD_PARTY.md").read_text()
    text = (DEBIAN / "copyright").read_text()
    for name, chapter in (("BSD-3-clause", "BSD, 3 clauses"), ("Lucent", "Lucent's notice"), ("Unicode", "Unicode's notice"), ("MIT", "MIT")):
        body = re.search(rf"^## {re.escape(chapter)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        if not body:
            raise Failure(f"THIRD_PARTY.md has no chapter '{chapter}', which debian/copyright quotes")
        lines = "".join(re.findall(r"^    .*\n|^\n(?=    )", body[1], re.MULTILINE))
        lines = textwrap.dedent(lines).strip().replace("YEAR OWNER", "the copyright holders above")
        text = text.replace("${" + name + "}", "\n".join(" " + (line or ".") for line in lines.splitlines()))
    return text


def changelog(release: Release) -> str:
    date = email.utils.formatdate(release.epoch, usegmt=True).replace("GMT", "+0000")
    return (f"thalweg ({release.version}) unstable; urgency=medium\n\n  * The changes of this version are in CHANGELOG.md of package "
            f"libthalweg-dev.\n\n -- {release.maintainer}  {date}\n")


def shared_dependencies(root: pathlib.Path, prefix: pathlib.Path, release: Release) -> str:
    """Returns the dependencies on packages with shared libraries, as dpkg-shlibdeps finds them."""
    programs = [file for file in files_below(root) if is_elf(file)]
    if not programs:
        return ""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "debian").mkdir()
        (folder / "debian/control").write_text("Source: thalweg\n\nPackage: thalweg\nArchitecture: any\n")
        (folder / "local").write_text(shlibs(release))
        said = run("dpkg-shlibdeps", "-O", f"-L{folder / 'local'}", f"-l{prefix / 'lib'}", *(f"-e{file}" for file in programs), cwd=folder)
    return said.strip().removeprefix("shlibs:Depends=")


def shlibs(release: Release) -> str:
    """Returns what a program built with this library depends on. The ABI is a draft, so it is this version alone."""
    return f"libthalweg {release.version.partition('.')[0]} {OWN_LIBRARY} (= {release.version})\n"


def control(stanza: dict[str, str], source: dict[str, str], root: pathlib.Path, prefix: pathlib.Path, release: Release) -> str:
    needed = shared_dependencies(root, prefix, release)
    architecture = "all" if stanza["Architecture"] == "all" else run("dpkg", "--print-architecture").strip()
    fields = {"Package": stanza["Package"], "Version": release.version, "Architecture": architecture,
              "Maintainer": release.maintainer, "Installed-Size": str(sum((f.lstat().st_size + 1023) // 1024 for f in files_below(root))),
              "Section": stanza.get("Section", source["Section"]), "Priority": source["Priority"]}
    fields |= {name: value for name, value in stanza.items() if name not in fields and name != "Description"}
    for name in ("Depends", "Recommends", "Suggests"):
        if name in fields:
            parts = fields[name].replace("${Version}", release.version).replace("${shlibs:Depends}", needed).split(",")
            fields[name] = ", ".join(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if stanza["Package"] != source["Source"]:
        fields["Source"] = source["Source"]
    fields["Description"] = stanza["Description"]
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def make(prefix: pathlib.Path, release: Release) -> list[pathlib.Path]:
    """Makes all packages of a tree and returns their files."""
    source, *packages = stanzas()
    made = []
    for stanza in packages:
        files = files_of(stanza["Package"], prefix)
        if files:
            with tempfile.TemporaryDirectory() as folder:
                made.append(make_one(stanza, source, files, pathlib.Path(folder), prefix, release))
    return made


def make_one(stanza: dict[str, str], source: dict[str, str], files: list[tuple[pathlib.Path, str]], root: pathlib.Path, prefix: pathlib.Path,
             release: Release) -> pathlib.Path:
    name, when = stanza["Package"], release.epoch
    for file, place in files:
        target = root / "usr" / place
        copy(file, target, when)
        if is_elf(target) and run("patchelf", "--print-rpath", target).strip():
            run("patchelf", "--remove-rpath", target)  # the loader searches /usr/lib without one
    doc = root / "usr/share/doc" / name
    write(doc / "copyright", copyright_text().encode(), when)
    write(doc / "changelog.gz", packed(changelog(release).encode(), 9), when)
    overrides = DEBIAN / f"{name}.lintian-overrides"
    if overrides.exists():
        write(root / "usr/share/lintian/overrides" / name, overrides.read_bytes(), when)
    about = control(stanza, source, root, prefix, release)
    sums = "".join(f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(root)}\n" for file in files_below(root) if not file.is_symlink())
    write(root / "DEBIAN/control", about.encode(), when)
    write(root / "DEBIAN/md5sums", sums.encode(), when)
    if name == OWN_LIBRARY:
        write(root / "DEBIAN/shlibs", shlibs(release).encode(), when)
        write(root / "DEBIAN/triggers", b"activate-noawait ldconfig\n", when)
    for script in ("postinst", "prerm"):
        if (DEBIAN / f"{name}.{script}").exists():
            write(root / "DEBIAN" / script, (DEBIAN / f"{name}.{script}").read_bytes(), when, 0o755)
    for path in [root, *root.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (when, when), follow_symlinks=False)
    architecture = re.search(r"^Architecture: (.*)$", about, re.MULTILINE)[1]
    out = release.out / f"{name}_{release.version}_{architecture}.deb"
    packing = ["-Zxz", f"-z{release.level}"] if release.level else ["-Znone"]
    run("dpkg-deb", "--root-owner-group", *packing, "--build", root, out, env={**os.environ, "SOURCE_DATE_EPOCH": str(when)})
    return out


def write(path: pathlib.Path, data: bytes, when: int, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, (when, when))
