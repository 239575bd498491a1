#!/usr/bin/env python3
"""Writes unicode_data.inc beside this file: groups of characters, decompositions, compositions and mappings to lower case and folded case,
from the tables of the Unicode Character Database. Run it again with newer tables for a newer Unicode.
usage: unicode_data.py [FOLDER]     (default: /usr/share/unicode, of Debian's package unicode-data)"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
LAST = 0x10ffff


def lines(name):
    """Returns the fields of each line, without comments."""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if fields != [""]:
            yield fields


def span(text):
    """Returns the range of code points that '0041..005A' or '0041' names."""
    first, _, last = text.partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


def codes(text):
    return [int(code, 16) for code in text.split()]


def properties(name, wanted):
    return {c for fields in lines(name) if fields[1] == wanted for c in span(fields[0])}


category = ["Cn"] * (LAST + 1)
combining, canonical, compatible, lower = {}, {}, {}, {}
first = None
for fields in lines("UnicodeData.txt"):
    c = int(fields[0], 16)
    if fields[1].endswith(", First>"):
        first = c
        continue
    for k in range(first if fields[1].endswith(", Last>") else c, c + 1):
        category[k] = fields[2]
    if int(fields[3]):
        combining[c] = int(fields[3])
    if fields[5].startswith("<"):
        compatible[c] = codes(fields[5].split("> ")[1])
    elif fields[5]:
        canonical[c] = codes(fields[5])
    if fields[13]:
        lower[c] = [int(fields[13], 16)]
for fields in lines("SpecialCasing.txt"):  # those without a condition
    if not fields[4]:
        lower[int(fields[0], 16)] = codes(fields[1])
folded = {int(fields[0], 16): codes(fields[2]) for fields in lines("CaseFolding.txt") if fields[1] in "CF"}
excluded = properties("DerivedNormalizationProps.txt", "Full_Composition_Exclusion")
ignorable = properties("DerivedCoreProperties.txt", "Default_Ignorable_Code_Point")
foldings = {c: codes(fields[2]) for fields in lines("DerivedNormalizationProps.txt") if fields[1] == "NFKC_CF" for c in span(fields[0])}


def jamo(c):
    """Returns the letters of a Hangul syllable."""
    k = c - 0xac00
    return [0x1100 + k // 588, 0x1161 + k % 588 // 28, *([0x11a7 + k % 28] if k % 28 else [])]


def decomposed(text):
    """Returns the characters of a text after the full decomposition of compatibility."""
    for _ in range(20):
        longer = [part for c in text for part in (jamo(c) if 0xac00 <= c < 0xd7a4 else compatible.get(c) or canonical.get(c) or [c])]
        if longer == text:
            return text
        text = longer
    raise SystemExit("decompositions do not end")


def check_folding():
    """unicode.cc computes NFKC_Casefold as: decompose, fold, decompose, drop what is ignorable. That must agree with the database."""
    for c in range(LAST + 1):
        ours = [part for k in decomposed([c]) for part in folded.get(k, [k])]
        ours = [k for k in decomposed(ours) if k not in ignorable]
        theirs = decomposed([k for k in foldings.get(c, [c])])
        if ours != theirs:
            raise SystemExit(f"U+{c:04X} folds to {ours}, but the database has {theirs}")


def group(c):
    kind = category[c]
    return {"Mn": 1, "Mc": 2, "Me": 2, "Pc": 3, "No": 5}.get(kind) or {"P": 4, "N": 6, "C": 7, "L": 8}.get(kind[0], 0)


def table(name, kind, rows):
    found, line = [], " "
    for row in rows:
        entry = " {" + ", ".join(str(v) if v < 10 else hex(v) for v in row) + "}," if isinstance(row, (list, tuple)) else f" {row:#x},"
        if len(line) + len(entry) > 140:
            found.append(line)
            line = " "
        line += entry
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join([*found, line]) + "\n};\n"


def runs(values):
    """Returns [first, last, value] for neighbours of one value."""
    found = []
    for c, value in values:
        if found and found[-1][1] == c - 1 and found[-1][2] == value:
            found[-1][1] = c
        else:
            found.append([c, c, value])
    return found


def mapped(changes):
    """([first, last, step, difference], ...) of characters that become another one, and (character, text) of those that become several."""
    single, several = [], []
    for c, text in sorted(changes.items()):
        if len(text) > 1:
            several.append((c, *text, *[0] * (3 - len(text))))
            continue
        difference = text[0] - c
        if difference == 0:
            continue
        if single and single[-1][3] == difference and c - single[-1][1] in ((1, 2) if single[-1][0] == single[-1][1] else (single[-1][2],)):
            single[-1][1:3] = c, c - single[-1][1]
        else:
            single.append([c, c, 1, difference])
    return single, several


def main():
    check_folding()
    version = re.search(r"DerivedCoreProperties-([\d.]+)\.txt", (FOLDER / "DerivedCoreProperties.txt").read_text(encoding="utf-8"))[1]
    out = "// Made by unicode_data.py; do not edit.\n"
    out += table("kGroups", "GroupRun", [(a, g) for a, _, g in runs((c, group(c)) for c in range(LAST + 1))])
    out += table("kCombining", "ClassRun", runs(sorted(combining.items())))
    out += table("kCanonical", "Pair", [(c, *text, *[0] * (2 - len(text))) for c, text in sorted(canonical.items())])
    out += table("kComposed", "Pair", sorted((*text, c) for c, text in canonical.items() if c not in excluded))
    whole, places = [], []
    for c, text in sorted(compatible.items()):
        places.append((c, len(whole), len(text)))
        whole += text
    out += table("kCompatible", "Place", places) + table("kCompatibleText", "uint32_t", whole)
    for name, changes in (("Lower", lower), ("Folded", folded)):
        single, several = mapped(changes)
        out += table(f"k{name}Runs", "Run", single) + table(f"k{name}Several", "Several", several)
    out += table("kIgnorable", "Range", [(a, b) for a, b, _ in runs((c, 0) for c in sorted(ignorable))])
    out += f"// Unicode {version}\n"
    (pathlib.Path(__file__).parent / "unicode_data.inc").write_text(out)


main()
