"""The C# binding, from its NuGet package, which has the library in it: its own tests, the digits, a model file, the cost of a call."""
import os
import re
import shutil
import xml.etree.ElementTree
import zipfile

import support

support.need("mcs", "mono", "cc")
out = support.folder("csharp")
archive = support.package("csharp", out)
unpacked, programs = out / "unpacked", out / "programs"
for folder in (unpacked, programs):
    shutil.rmtree(folder, ignore_errors=True)
with zipfile.ZipFile(archive) as packed:
    packed.extractall(unpacked)
    for info in packed.infolist():
        os.chmod(unpacked / info.filename, info.external_attr >> 16)
    names = packed.namelist()
support.check("runtimes/linux-x64/native/libthalweg.so.0" in names, "the package has the library")
nuspec = xml.etree.ElementTree.parse(unpacked / "Thalweg.nuspec").getroot()
found = {re.sub("{.*}", "", e.tag): e.text for e in nuspec.iter()}
support.check((found["id"], found["version"], archive.name) == ("Thalweg", "0.1.0", "Thalweg.0.1.0.nupkg"), "the nuspec has the name and version of the package")
types = xml.etree.ElementTree.parse(unpacked / "[Content_Types].xml").getroot()
endings, parts = {e.get("Extension") for e in types}, {e.get("PartName") for e in types}
untyped = [n for n in names[1:] if "/" + n not in parts and n.rsplit("/", 1)[-1].rpartition(".")[2] not in endings]
support.check(names[0] == "[Content_Types].xml" and not untyped, f"each part of the package has a type: {untyped}")
documented = {e.get("name") for e in xml.etree.ElementTree.parse(unpacked / "lib/net472/Thalweg.xml").getroot().iter("member")}
support.check(any(n.startswith("M:Thalweg.Ops.MatMul(") for n in documented), "the documentation has the ops")
support.check(sum(n.startswith("M:Thalweg.Low.tw_") for n in documented) > 400, "the documentation has the functions of C")

programs.mkdir()
library = unpacked / "lib/net472"
for source in [support.SOURCE / "bindings/csharp/test/BindingTest.cs", *sorted((support.SOURCE / "bindings/csharp/examples").glob("*.cs"))]:
    support.run("mcs", "-warnaserror", "-langversion:7.2", f"-r:{library / 'Thalweg.dll'}", f"-out:{programs / (source.stem + '.exe')}", source,
                what=f"mcs compiles {source.name} without a warning")
# The package is enough: no other library is on the path of the loader.
env = {k: v for k, v in support.environment(MONO_PATH=str(library)).items() if k not in ("LD_LIBRARY_PATH", "THALWEG_PLUGIN_PATH")}
text = support.run("mono", programs / "BindingTest.exe", cwd=out, env=env, what="the package's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith(("passed", "skipped"))))

# The compiler of C says whether size and offsets of each record are those of the headers.
records = [line.split() for line in support.run("mono", programs / "BindingTest.exe", "layouts", env=env, what="the records").splitlines()]
asserts = [f'_Static_assert(sizeof({r[0]}) == {r[1]}, "{r[0]}");' if len(r) == 2 else f'_Static_assert(offsetof({r[0]}, {r[1]}) == {r[2]}, "{r[0]}.{r[1]}");'
           for r in records]
(out / "layouts.c").write_text("#include <stddef.h>\n#include <thalweg/thalweg.h>\n" + "\n".join(asserts) + "\n")
support.run("cc", "-std=c11", "-fsyntax-only", f"-I{support.SOURCE}/c_api/include", out / "layouts.c", what=f"{len(asserts)} sizes and offsets are those of C")

support.lines(support.SOURCE / "bindings/csharp/examples/Digits.cs", 40, "the digits program")
support.check_digits(support.run("mono", programs / "Digits.exe", support.DIGITS, env=env))
if support.MODEL.exists():
    support.check("sum [3, 4, 5]" in support.run("mono", programs / "RunModel.exe", support.MODEL, env=env), "a model file runs by its names")
support.check_cost(lambda: support.run("mono", programs / "BindingTest.exe", "cost", env=env), out)
support.end()
