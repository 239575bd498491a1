#!/usr/bin/env python3
"""Writes unicode_case_data.inc beside this file: what becomes of each character in lower and upper case, by Python's own Unicode tables.
Run it again with a newer Python for a newer Unicode. usage: unicode_case.py"""
import pathlib
import unicodedata

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def mapped(change):
    """([first, last, step, difference], ...) of characters that become another one, and (character, text) of those that become several."""
    runs, several = [], []
    for c in CHARACTERS:
        text = change(c)
        if text == c:
            continue
        if len(text) > 1:
            several.append((ord(c), text))
            continue
        code, difference = ord(c), ord(text) - ord(c)
        if runs and runs[-1][3] == difference and code - runs[-1][1] in ((1, 2) if runs[-1][0] == runs[-1][1] else (runs[-1][2],)):
            runs[-1][1:3] = code, code - runs[-1][1]
        else:
            runs.append([code, code, 1, difference])
    return runs, several


def ranges(characters):
    found = []
    for code in map(ord, characters):
        if found and code == found[-1][1] + 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def before_sigma(text):
    """Whether a sigma behind the text is written as the last of a word."""
    return (text + "\u03a3").lower()[-1] == "\u03c2"


def table(name, kind, rows):
    lines, line = [], " "
    for row in rows:
        entry = " {" + ", ".join(str(v) if v < 0 or v < 10 else hex(v) for v in row) + "},"
        if len(line) + len(entry) > 140:
            lines.append(line)
            line = " "
        line += entry
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def main():
    out = "// Made by unicode_case.py; do not edit.\n"
    for name, change in (("Lower", str.lower), ("Upper", str.upper)):
        runs, several = mapped(change)
        out += table(f"k{name}Runs", "Run", runs)
        out += table(f"k{name}Several", "Several", [[c, *map(ord, text), *[0] * (3 - len(text))] for c, text in several])
    cased = [c for c in CHARACTERS if before_sigma(c)]
    skipped = [c for c in CHARACTERS if before_sigma("A" + c) and not before_sigma(c)]
    out += table("kCased", "Range", ranges(cased)) + table("kIgnorable", "Range", ranges(skipped))
    out += f"// Unicode {unicodedata.unidata_version}\n"
    (pathlib.Path(__file__).parent / "unicode_case_data.inc").write_text(out)


main()
