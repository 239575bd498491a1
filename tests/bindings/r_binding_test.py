"""The R binding, from its source package, as R CMD INSTALL takes it: its own tests, the digits, a model file, the cost of a call."""
import shutil

import support

support.need("R", "Rscript", "cc")
out = support.folder("r")
archive = support.package("r", out)
library = out / "library"
shutil.rmtree(library, ignore_errors=True)
library.mkdir()
config = support.environment(PKG_CONFIG_PATH=str(support.pkg_config(out / "pc")))
text = support.run("R", "CMD", "INSTALL", "--no-html", f"--library={library}", archive, env=config, what="R CMD INSTALL takes the package")
support.check("Warning" not in text and "warning:" not in text, "it compiles without a warning, and its pages of help are well-formed")
env = support.environment(R_LIBS=str(library), LC_ALL="C.UTF-8")
tests, examples = support.SOURCE / "bindings/r/test/binding_test.R", support.SOURCE / "bindings/r/examples"
source = f"source('{tests}', keep.source = TRUE)"  # R keeps the lines of a program only if it is asked to
text = support.run("Rscript", "-e", source, cwd=out, env=env, what="the package's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith(("passed", "skipped"))))
page = support.run("Rscript", "-e", "tools::Rd2txt(utils:::.getHelpFile(help('MatMul', package = 'thalweg')))", env=env, what="R shows the page of an op")
support.check("op$MatMul(s, a, b, transpose_a = NULL" in page, "the page of MatMul has its attributes")
support.lines(examples / "digits.R", 40, "the digits program")
support.check_digits(support.run("Rscript", examples / "digits.R", support.DIGITS, env=env))
if support.MODEL.exists():
    support.check("sum [3, 4, 5]" in support.run("Rscript", examples / "model.R", support.MODEL, env=env), "a model file runs by its names")
# A step makes a tensor of R, which needs a finalizer, and R looks for the method: together some 3 µs.
support.check_cost(lambda: support.run("Rscript", "-e", source, "cost", env=env), out, most_step=6000)
support.end()
