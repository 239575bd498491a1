"""The Rust crate, from its archive, with rustc alone: its own tests, programs that must not compile, the digits, the cost of a call."""
import shutil
import tarfile

import support

# Programs that use what has ended, or share what one thread may use, and the error by which rustc refuses each.
REFUSED = {
    "a callable outlives its session": ("let c = { let s = Session::new(&g, &[])?; s.callable(&[], &[], &[])? }; c.run(&[])?;", "E0597"),
    "an operation outlives its graph": ("let o = { let h = Graph::new()?; h.operation(\"x\")? }; o.name();", "E0597"),
    "elements outlive their tensor": ("let d = { let t = Tensor::scalar(1f32)?; t.data::<f32>()? }; drop(d);", "E0597"),
    "elements are written while they are read": ("let mut t = Tensor::scalar(1f32)?; let d = t.data::<f32>()?; t.data_mut::<f32>()?; drop(d);", "E0502"),
    "a scope is used after its end": ("let s = g.scope(\"\"); s.finish()?; s.ints(&[1]);", "E0382"),
    "two threads use a scope": ("let s = g.scope(\"\"); std::thread::scope(|t| { t.spawn(|| s.ints(&[1])); });", "E0277"),
    "a trainer outlives its session": (
        "let mut b = Batches::from_fn(1, || Ok(None), None); let mut t = { let s = Session::new(&g, &[])?; "
        "Trainer::new(&g, &s, &TrainerModel::default())? }; t.evaluate(&mut b)?;", "E0597"),
}

rustc = shutil.which("rustc", path="/usr/bin") or "rustc"
support.need(rustc, "cc")
out = support.folder("rust")
archive = support.package("rust", out)
shutil.rmtree(out / "unpacked", ignore_errors=True)
with tarfile.open(archive) as packed:
    packed.extractall(out / "unpacked")
crate, library = out / "unpacked/thalweg-0.1.0", out / "libthalweg.rlib"
common = ["--edition", "2021", "-C", "opt-level=1", "-L", f"native={support.LIBRARY}", "-D", "warnings"]
support.run(rustc, *common, "--crate-type", "rlib", "--crate-name", "thalweg", crate / "src/lib.rs", "-o", library, what="rustc compiles the crate without a warning")
used = [*common, "--extern", f"thalweg={library}"]
support.run(rustc, *used, "--test", crate / "tests/binding.rs", "-o", out / "tests")
support.run(rustc, *used, crate / "examples/digits.rs", "-o", out / "digits")
text = support.run(out / "tests", cwd=out, what="the crate's own tests")
print("\n".join(line for line in text.splitlines() if line.startswith("test ")))
support.run(out / "tests", "--ignored", "--exact", "a_fork_goes_on", cwd=out, what="the child of a fork runs steps with what it inherited")

for what, (body, code) in REFUSED.items():
    source = out / "refused.rs"
    source.write_text(f"use thalweg::*;\nfn main() -> Result<()> {{ let g = Graph::new()?; {body} Ok(()) }}\n")
    done = support.subprocess.run([rustc, *used, "--emit=metadata", "-o", out / "refused.rmeta", source], capture_output=True, text=True, check=False)
    support.check(done.returncode != 0 and f"error[{code}]" in done.stderr, f"rustc refuses a program in which {what}: {done.stderr[:200] if code not in done.stderr else code}")

support.lines(crate / "examples/digits.rs", 40, "the digits program")
support.check_digits(support.run(out / "digits", support.DIGITS))
support.check_cost(lambda: support.run(out / "tests", "--ignored", "--nocapture", "cost", cwd=out), out)
support.end()
