"""Formats results as the table that tools/bench prints, and as JSON."""
import dataclasses

COLUMNS = ("row", "what", "ours", "anchor", "ratio", "goal", "met")
UNITS = {"us": 1e3, "ns": 1, "ms": 1e6, "MB": 1e6, "calls": 1, "iterations": 1}  # samples are nanoseconds or bytes


def figure(value, unit):
    return f"{value / UNITS[unit]:.3g} {unit}"


def ratio(result):
    if not result.metric:
        return "-"
    low, middle, high = result.metric
    if result.of in ("ratio", "probe"):
        text = f"{middle:.3g}x" + (f" [{low:.3g} {high:.3g}]" if low != high else "")
        return text + (f" {result.probe_name}" if result.of == "probe" else "")
    if result.of == "difference":
        scale = UNITS[result.unit]
        return f"{middle / scale:+.3g} {result.unit} [{low / scale:.3g} {high / scale:.3g}]"
    return f"{result.ours / result.anchor:.3g}x"


def goal(result):
    if not result.goal:
        return "-"
    limits = [f"{value:g}x" if result.goal.of == "ratio" else "+" * (result.goal.of == "difference") + figure(value, result.unit)
              for value in (result.goal.limit, result.goal.floor) if value is not None]
    return f"<= {limits[0]}" + (f" (floor {limits[1]})" if len(limits) > 1 else "")


def cells(result):
    anchor = "no anchor" if result.anchor is None else figure(result.anchor, result.unit)
    return (str(result.row), result.what, figure(result.ours, result.unit), f"{result.anchor_name}: {anchor}", ratio(result), goal(result),
            result.met)


def text(results):
    return columns([COLUMNS, *map(cells, results)])


def columns(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown(results):
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(cells, results)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plain(results):
    return [dataclasses.asdict(result) for result in results]


def probe_line(probe):
    (fma, fma2), (triad, triad2) = probe["fma"], probe["triad"]
    return (f"probe, on 1 / 2 threads: multiply-add {fma:.0f} / {fma2:.0f} GFLOP/s ({fma2 / fma:.2f}x), "
            f"triad {triad:.0f} / {triad2:.0f} GB/s; mutex pair {probe['mutex_ns']:.1f} ns; load {probe['load']:.2f}")
