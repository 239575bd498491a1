"""Times a step of one of the networks of this folder: `bench.py NAME [--batch N] [--threads T] [--device D] [--forward]`.

A step is a training step: forward pass, gradients, and the update of the network's own optimizer; with --forward it is the
forward pass as in inference. Images or texts have the paper's sizes and random contents, and are in variables on the device, so
that no step copies them. `first` is the step that makes the plan."""
import argparse
import ast
import inspect
import json
import resource
import statistics
import sys
import time

try:
    import numpy as np

    import thalweg as tw
except ModuleNotFoundError as error:
    sys.exit(f"bench: {sys.executable} has no module '{error.name}'; install it, or name a Python that has it in THALWEG_PYTHON")

import counts
import models


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help=f"one of: {', '.join(models.MODELS)}")
    parser.add_argument("--batch", type=int, default=1, help="examples of a step; 1")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--device", help="the device that runs the network, such as CUDA:0; operations without a kernel there run on "
                        "the host. The default is the runtime's choice")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--warmup", type=int, default=2, help="steps before those that are measured; 2")
    parser.add_argument("--repeat", type=int, help="measure so many steps")
    parser.add_argument("--seconds", type=float, default=5.0, help="measure steps for this time, and at least 3; 5")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a parameter of network() or example() in the network's file, such as side=128; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    for option, least in (("batch", 1), ("threads", 0), ("warmup", 0), ("repeat", 1)):
        value = getattr(given, option)
        if value is not None and value < least:
            parser.error(f"--{option} takes a number of {least} or more, not {value}")
    if not given.seconds > 0:
        parser.error(f"--seconds takes a number above 0, not {given.seconds}")
    try:
        given.model = models.load(given.name)
    except ValueError as error:
        parser.error(str(error))
    if not hasattr(given.model, "example"):
        parser.error(f"'{given.name}' has no batches to time; its program is {given.model.__name__}.py")
    given.for_network, given.for_example = chosen(parser, given)
    return given


def chosen(parser, given):
    """Returns what --set says for network() and for example()."""
    found = {}, {}
    takers = [inspect.signature(f).parameters for f in (given.model.network, given.model.example)]
    for text in given.set:
        name, _, value = text.partition("=")
        try:
            value = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            parser.error(f"--set takes NAME=VALUE, where the value is a number, True, False or a quoted text, not '{text}'")
        if name == "batch" or not any(name in taker for taker in takers):
            known = sorted({p for taker in takers for p in taker} - {"batch"})
            parser.error(f"'{given.name}' has no parameter '{name}'; there are: {', '.join(known)}")
        for values, taker in zip(found, takers):
            if name in taker:
                values[name] = value
    return found


class Step:
    """The graph and the session of a network, and a step of it."""

    def __init__(self, given):
        inputs, targets = given.model.example(given.batch, **given.for_example)
        with tw.Graph() as g:
            flag = tw.nn.training(g)
            held = [tw.Variable(a, trainable=False).read() for a in (*inputs, *(() if given.forward else targets))]
            self.net = given.model.network(**given.for_network)
            outputs = self.net(*held[:len(inputs)])
            fetched = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            self.macs = counted(fetched)
            step = []
            if not given.forward:
                loss = tw.train.LOSSES.get(given.model.loss, given.model.loss) if isinstance(given.model.loss, str) else given.model.loss
                value = loss(outputs, *held[len(inputs):])
                value = value if value.shape == () else value.mean()
                step, fetched = [given.model.optimizer().minimize(value)], [value]
            start = g.initializer()
        options = {"threads": given.threads} | ({"device": given.device, "fallback": "allow"} if given.device else {})
        self.session = tw.Session(g, **options)
        self.session.run(start)
        self.call = self.session.callable(fetched, feeds=[flag], targets=step)
        self.training = not given.forward

    def __call__(self):
        """Runs it, and returns its seconds."""
        began = time.perf_counter()
        results = self.call(self.training)
        seconds = time.perf_counter() - began
        if self.training and not np.isfinite(results[0]):
            raise ValueError(f"the loss is {results[0]}; a smaller network or batch may need another rate than the paper's")
        return seconds


def counted(outputs):
    """The multiply-accumulates of a forward pass; None where the graph does not say."""
    try:
        return counts.multiply_accumulates(outputs)
    except ValueError:
        return None


def measured(given):
    step = Step(given)
    first = step()
    for _ in range(given.warmup):
        step()
    times, began = [], time.perf_counter()
    while len(times) < (given.repeat or 3) or (not given.repeat and time.perf_counter() - began < given.seconds):
        times.append(step())
    median = statistics.median(times)
    return {"model": given.name, "what": "forward" if given.forward else "training", "batch": given.batch, "threads": given.threads,
            "device": given.device or "", "steps": len(times), "first_seconds": first, "min_seconds": min(times),
            "median_seconds": median, "mean_seconds": statistics.mean(times), "max_seconds": max(times),
            "examples_per_second": given.batch / median, "parameters": counts.parameters(step.net),
            "multiply_accumulates": step.macs, "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def table(row):
    cells = {"steps": row["steps"], **{k: f"{row[k + '_seconds'] * 1e3:.2f} ms" for k in ("first", "min", "median", "mean", "max")},
             "examples/s": f"{row['examples_per_second']:.1f}", "peak memory": f"{row['peak_rss_bytes'] / 1e6:.0f} MB"}
    widths = [max(len(k), len(str(v))) for k, v in cells.items()]
    lines = ["  ".join(str(c).rjust(w) for c, w in zip(line, widths)) for line in (cells.keys(), cells.values())]
    products = row["multiply_accumulates"]
    macs = "" if products is None else f", {products:,} multiply-accumulates in the forward pass of the batch"
    return "\n".join([f"{row['model']}: {row['what']}, batch {row['batch']}, {row['parameters']:,} parameters{macs}", *lines])


def main(arguments=None):
    given = parse(arguments)
    row = measured(given)
    print(json.dumps(row) if given.json else table(row))


if __name__ == "__main__":
    main()
