"""The Go binding, from its packaged module: its own tests, the digits, a model file, the cost of a call."""
import os
import zipfile

import support

support.need("go", "pkg-config", "cc")
out = support.folder("go")
archive = support.package("go", out)
with zipfile.ZipFile(archive) as packed:
    names = packed.namelist()
    support.check(all(n.startswith("thalweg.org/go@v0.1.0/") for n in names), "the archive has the layout of a module")
    for name in names:  # written only where it changed, so that what was compiled is kept
        path, data = out / "unpacked" / name, packed.read(name)
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
module = out / "unpacked/thalweg.org/go@v0.1.0"
env = support.environment(PKG_CONFIG_PATH=str(support.pkg_config(out / "pc")), GOCACHE=str(out / "cache"), GOPROXY="off", GOFLAGS="-mod=mod",
                          GOMODCACHE=str(out / "modules"), GOTOOLCHAIN="local")
formatted = support.run("gofmt", "-l", *sorted((support.SOURCE / "bindings/go").rglob("*.go")), what="gofmt reads the files")
support.check(not formatted.strip(), f"gofmt would change nothing: {formatted.strip()[:300]}")
support.run("go", "build", "-o", out / "digits", "./examples/digits", cwd=module, env=env)
support.run("go", "build", "-o", out / "model", "./examples/model", cwd=module, env=env)
support.run("go", "test", "-c", "-o", out / "tests", ".", cwd=module, env=env)
support.run("go", "vet", "-unsafeptr=false", "./ops", cwd=module, env=env, what="every op's function compiles")
text = support.run(out / "tests", "-test.v", cwd=out, env=env, what="the binding's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith("---")))
support.lines(module / "examples/digits/main.go", 40, "the digits program")
support.check_digits(support.run(out / "digits", support.DIGITS, env=env))
if support.MODEL.exists():
    support.check("sum [3 4 5]" in support.run(out / "model", support.MODEL, env=env), "a model file runs by its names")
support.check_cost(lambda: support.run(out / "tests", "-test.run", "TestCost", "-test.v", cwd=out, env=env | {"THALWEG_TEST_COST": "1"}), out)
support.end()
