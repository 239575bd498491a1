"""Writes the section `Figures` of README.md: the results of a run of all rows, some of which may have been run again."""
import pathlib
import platform
import re
import time

import table

README = pathlib.Path(__file__).resolve().parent / "README.md"
HEADING = "## Figures\n"
AGAIN = re.compile(r"- rows ([\d, ]+) again: (.*)")
LINE = re.compile(r"\| (\d+) \|")


def machine():
    """Returns the names of the processors and of the system."""
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {platform.freedesktop_os_release()['PRETTY_NAME']}"


def today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def probed(probes):
    return "\n".join("    " + table.probe_line(probe) for probe in probes)


def write(bench, pairs, versions, notes):
    """Replaces everything under the heading, which is the last one of the file, by the results of one run."""
    text = README.read_text()
    facts = (f"Written by `tools/bench --peers --readme --pairs {pairs}` on {today()}: {bench.cpus()} of the processors of {machine()}, "
             f"preset release; {', '.join(sorted(version.replace('==', ' ') for version in versions))}.")
    parts = [facts, table.markdown(bench.results), probed(bench.probes)]
    if notes:
        parts.append("What the misses mean:\n" + "\n".join("- " + note.replace("\n", "\n  ") for note in notes))
    README.write_text(text[:text.index(HEADING) + len(HEADING)] + "\n\n".join(parts) + "\n")


def put(below, lines, about, order):
    """Returns the text under the heading with these lines in place of those of the same rows, and with the time and machine of their run.
    order: the numbers of all rows."""
    def number(line):
        return int(LINE.match(line)[1])

    new = sorted({number(line) for line in lines}, key=order.index)
    head, body = below.split("\n\n", 1)
    facts, again = [], []
    for line in head.split("\n"):
        if match := AGAIN.fullmatch(line):
            again.append(([n for n in map(int, match[1].split(",")) if n not in new], match[2]))
        else:
            facts.append(line)
    facts += [f"- rows {', '.join(map(str, numbers))} again: {what}" for numbers, what in [*again, (new, about)] if numbers]
    body = body.split("\n")
    rows = [k for k, line in enumerate(body) if LINE.match(line)]
    kept = [body[k] for k in rows if number(body[k]) not in new]
    body[rows[0]:rows[-1] + 1] = sorted(kept + list(lines), key=lambda line: order.index(number(line)))
    return "\n".join(facts) + "\n\n" + "\n".join(body)


def write_again(bench, pairs, order):
    """Replaces only the rows that were run."""
    text = README.read_text()
    at = text.index(HEADING) + len(HEADING)
    about = "; ".join([f"{today()}, `--pairs {pairs}`, {machine()}", *map(table.probe_line, bench.probes[:1])])
    README.write_text(text[:at] + put(text[at:], table.markdown(bench.results).split("\n")[2:], about, order))
