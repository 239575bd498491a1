"""The Java binding, from its jar, which has the native library in it: its own tests, the digits, a model file, the cost of a call."""
import re
import shutil
import zipfile

import support

support.need("java", "javac", "cc")
out = support.folder("java")
archive = support.package("java", out)
env = {k: v for k, v in support.environment().items() if k not in ("LD_LIBRARY_PATH", "THALWEG_PLUGIN_PATH")}  # the jar is enough
with zipfile.ZipFile(archive) as packed:
    support.check("org/thalweg/natives/libthalweg_java.so" in packed.namelist(), "the jar has the native library")
shutil.rmtree(out / "programs", ignore_errors=True)
programs = [support.SOURCE / "bindings/java/test/BindingTest.java", *sorted((support.SOURCE / "bindings/java/examples").glob("*.java"))]
support.run("javac", "-Xlint:all", "-Werror", "-cp", archive, "-d", out / "programs", *programs, what="javac compiles the programs without a warning")
java = ["java", "-Xmx256m", "-Xcheck:jni", "-cp", f"{archive}:{out / 'programs'}"]
text = support.run(*java, "BindingTest", cwd=out, env=env, what="the jar's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith(("passed", "skipped"))))
support.check(not re.search(r"WARNING|FATAL", text), f"the JVM's checks of native code find nothing: {re.findall('.*(?:WARNING|FATAL).*', text)[:3]}")
# Every native method is linked: the names that the JVM looks for are those that the library exports.
symbols = support.run("nm", "-D", "--defined-only", out / "classes/org/thalweg/natives/libthalweg_java.so", what="nm reads the library")
exported = set(re.findall(r"Java_org_thalweg_Low_(\w+)", symbols))
declared = {name.replace("_", "_1") for name in re.findall(r"native \w+ (tw_\w+)\(", (out / "package/src/org/thalweg/Low.java").read_text())}
support.check(len(declared) > 480 and declared == exported, f"{len(declared)} native methods, {len(exported)} functions for them")
java.remove("-Xcheck:jni")
support.lines(support.SOURCE / "bindings/java/examples/Digits.java", 40, "the digits program")
support.check_digits(support.run(*java, "Digits", support.DIGITS, env=env))
if support.MODEL.exists():
    support.check("sum [3, 4, 5]" in support.run(*java, "RunModel", support.MODEL, env=env), "a model file runs by its names")
support.check_cost(lambda: support.run(*java, "BindingTest", "cost", env=env), out)
support.end()
