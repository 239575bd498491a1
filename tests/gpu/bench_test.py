"""Runs the bench of `run` with one small step of each network on the stub driver, and checks its output. `bench_test.py OUT`"""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from networks import NETWORKS, PAPER, flop_of_step  # noqa: E402

# GFLOP of a step: the product of the TFLOP/s and the milliseconds that the convnet benchmarks measured.
MEASURED = {"AlexNet": 6.55 * 81, "Overfeat": 7.61 * 279, "VGG-A": 5.39 * 540, "GoogLeNet": 2.66 * 445}


def main():
    wrong = []
    for name, expected in MEASURED.items():
        network, batch, side = NETWORKS[name]
        found = flop_of_step(network, batch, side) / 1e9
        if abs(found / expected - 1) > 0.01:
            wrong.append(f"a step of {name} at its batch has {found:.0f} GFLOP, not {expected:.0f}")
    out = pathlib.Path(sys.argv[1])
    for precision in ("float", "tf32"):
        env = {**os.environ, "THALWEG_GPU_PRECISION": precision,
               "THALWEG_OPTIONS": os.environ["THALWEG_OPTIONS"] + f";plugin.org.thalweg.cuda.precision={precision}"}
        done = subprocess.run([sys.executable, HERE / "bench.py", out, "small"], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong.append(f"{precision}: status {done.returncode}\n{done.stdout}{done.stderr}")
            continue
        rows = json.loads(out.read_text())
        peak = 2 * 128 * 132 * 1.98e9  # the figures that the stub reports
        if abs(rows["peak"]["flop_per_second"] / peak - 1) > 1e-9:
            wrong.append(f"the peak is {rows['peak']}, not {peak}")
        for name in NETWORKS:
            row = next((r for title, r in rows.items() if title.startswith(name + ",") and title.endswith(precision)), None)
            if row is None:
                wrong.append(f"{precision}: no row of {name}")
                continue
            ours = row["Thalweg"]
            if ours["seconds"] <= 0 or abs(ours["of_peak"] * peak / ours["flop_per_second"] - 1) > 1e-9:
                wrong.append(f"{precision}, {name}: {ours}")
            if row.get("the paper of 2016, of its card's peak") != PAPER.get(name):
                wrong.append(f"{precision}, {name}: the paper's ratios are not beside it")
    print("\n".join(wrong) or "every network, with its part of the peak")
    return 1 if wrong else 0


sys.exit(main())
