"""The Node.js binding, from its tarball: its own tests, its types, the digits, a model file, the cost of a call."""
import shutil
import tarfile

import support

support.need("node", "cc")
out = support.folder("node")
archive = support.package("node", out)
modules = out / "unpacked/node_modules"
shutil.rmtree(out / "unpacked", ignore_errors=True)
with tarfile.open(archive) as packed:
    packed.extractall(out / "unpacked")
modules.mkdir()
(out / "unpacked/package").rename(modules / "thalweg")
package, env = modules / "thalweg", support.environment(NODE_PATH=str(modules))
tests = support.SOURCE / "bindings/node/test"
text = support.run("node", "--expose-gc", tests / "binding.test.js", cwd=out, env=env, what="the package's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith(("ok", "not ok", "✔", "✖"))))
if shutil.which("tsc"):
    shutil.copyfile(tests / "types.ts", out / "unpacked/types.ts")
    (out / "unpacked/tsconfig.json").write_text('{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2020", "module": "commonjs", '
                                                '"moduleResolution": "node", "types": ["node"], "lib": ["es2020", "dom"]}, "files": ["types.ts"]}\n')
    (modules / "@types/node").mkdir(parents=True)  # of Node.js itself the declarations use Buffer only
    (modules / "@types/node/index.d.ts").write_text("declare class Buffer extends Uint8Array {}\n")
    support.run("tsc", "-p", out / "unpacked", what="tsc --strict accepts the declarations, and refuses what they exclude")
else:
    print("skipped  there is no tsc; run tools/setup --languages")
support.lines(package / "examples/digits.js", 40, "the digits program")
support.check_digits(support.run("node", package / "examples/digits.js", support.DIGITS, env=env))
if support.MODEL.exists():
    support.check("sum [ 3, 4, 5 ]" in support.run("node", package / "examples/model.js", support.MODEL, env=env), "a model file runs by its names")
support.check_cost(lambda: support.run("node", tests / "cost.js", env=env), out)
support.end()
