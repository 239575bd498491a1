#!/usr/bin/env python3
"""Makes the NuGet package: the assembly with its documentation, and libthalweg.so with its plugins.

usage: make_package.py [--build BUILD] --out FOLDER

A program needs the contents of this package alone. The natives are those of this machine's architecture."""
import pathlib
import shutil
import subprocess
import sys
from xml.sax.saxutils import escape, quoteattr

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "generate"))
import package  # noqa: E402

FRAMEWORK = "net472"
NUSPEC = f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>Thalweg</id>
    <version>{package.VERSION}</version>
    <authors>Thalweg</authors>
    <description>{escape("Builds graphs, trains and runs machine-learning models with the Thalweg runtime.")}</description>
    <license type="expression">Apache-2.0</license>
    <readme>README.md</readme>
    <dependencies>
      <group targetFramework=".NETFramework4.7.2" />
    </dependencies>
  </metadata>
</package>
"""
RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/Thalweg.nuspec" Id="R1" />
</Relationships>
"""

# Mono looks for the library at this place, beside the assembly, and then on the path of the system's loader. .NET knows the folder by itself.
CONFIGURATION = """<configuration>
  <dllmap dll="libthalweg.so.0" target="../../runtimes/linux-x64/native/libthalweg.so.0" />
</configuration>
"""


def content_types(files):
    """The part of an OPC package that has a type for each ending, and for each file without one."""
    types = {"rels": "application/vnd.openxmlformats-package.relationships+xml"}
    endings = sorted({f.suffix[1:] for f in files if f.suffix} | {"rels"})
    lines = [f"  <Default Extension={quoteattr(e)} ContentType={quoteattr(types.get(e, 'application/octet'))} />" for e in endings]
    lines += [f"  <Override PartName={quoteattr('/' + str(f))} ContentType=\"application/octet\" />" for f in files if not f.suffix]
    return ('<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\n' + "\n".join(lines) + "\n</Types>\n")


def compile_assembly(folder, out):
    sources, assembly = sorted((folder / "src").glob("*.cs")), out / "Thalweg.dll"
    if not assembly.exists() or any(s.stat().st_mtime > assembly.stat().st_mtime for s in sources):
        out.mkdir(parents=True, exist_ok=True)
        (folder / "Version.cs").write_text(f'[assembly: System.Reflection.AssemblyVersion("{package.VERSION}.0")]\n')
        # 1591: members whose names say all have no comment
        subprocess.run(["mcs", "-unsafe", "-optimize", "-langversion:7.2", "-warnaserror", "-nowarn:1591", "-target:library", f"-doc:{out / 'Thalweg.xml'}",
                        f"-out:{assembly}", folder / "Version.cs", *sources], check=True)


def main():
    found = package.arguments(__doc__.split("\n", maxsplit=1)[0])
    folder, contents, archive = found.out / "package", found.out / "contents", found.out / f"Thalweg.{package.VERSION}.nupkg"
    if not shutil.which("mcs"):
        sys.exit("make_package: there is no mcs; run tools/setup --languages")
    package.generate("csharp", found.build, folder)
    package.copy(here, folder, ["src", "examples", "README.md"])
    compile_assembly(folder, contents / "lib" / FRAMEWORK)
    (contents / "lib" / FRAMEWORK / "Thalweg.dll.config").write_text(CONFIGURATION)
    package.natives(found.build, contents / "runtimes/linux-x64/native")
    shutil.copyfile(here / "README.md", contents / "README.md")
    shutil.copyfile(package.ROOT / "LICENSE", contents / "LICENSE")
    (contents / "Thalweg.nuspec").write_text(NUSPEC)
    (contents / "_rels").mkdir(exist_ok=True)
    (contents / "_rels/.rels").write_text(RELATIONS)
    types = contents / "[Content_Types].xml"
    files = [f for f in package.files_of(contents) if f != types]
    types.write_text(content_types([f.relative_to(contents) for f in files]))
    package.zip_archive(archive, contents, "", [types, *files])
    print(archive)


if __name__ == "__main__":
    main()
