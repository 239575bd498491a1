# Each broken plugin of mutants/ is caught by the rules named here, by no others, and the kit's exit status says so.
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from kit import BINARY_DIR, run

# Rules that a mutant may break too, as threads happen to meet.
PERHAPS = {"blocks_overlap": [107]}

# name: level, rules that it breaks, options
MUTANTS = {
    "healthy": (5, []),
    "healthy_streams": (5, []),
    "exports_more": (0, [2]),
    "imports_ours": (0, [3]),
    "opens_at_load": (0, [4, 10]),
    "query_counts": (0, [5]),
    "no_version": (0, [6]),
    "one_runtime": (0, [8]),
    "thread_left": (0, [9, 10]),
    "grows": (0, [10]),
    "swallows": (0, [11]),
    "trusts_size": (0, [12]),
    "uid_changes": (1, [101]),
    "misaligned": (1, [102]),
    "offset_lost": (1, [103]),
    "copies_words": (1, [104]),
    "blocks_overlap": (1, [105]),
    "never_full": (1, [106]),
    "one_buffer": (1, [107]),
    "swallows_list": (1, [108]),
    "odd_element": (2, [201]),
    "drifts": (2, [202]),
    "promises_scalar": (2, [203]),
    "wrong_gradient": (2, [204]),
    "keeps_frame": (2, [205]),
    "one_too_far": (2, [206]),
    "one_scratch": (2, [207]),
    "keeps_tensor": (2, [208]),
    "signals_at_once": (3, [301, 302, 303, 304]),
    "never_waits": (3, [303, 304]),
    "silent_after_failure": (3, [305]),
    "gives_up_work": (3, [306]),
    "leaves_threads": (3, [307]),
    "completes_twice": (3, [308]),
    "trusts_host": (3, [309]),
    "healthy_compiler": (5, []),
    "claims_twice": (4, [401]),
    "refuses_mutely": (4, [402]),
    "mixes_inputs": (4, [403, 407, 408]),
    "any_tag": (4, [405]),
    "fills_up": (4, [406]),
    "keeps_part": (4, [407]),
    "healthy_files": (5, []),
    "short_reads": (5, [524]),
    "rename_stops": (5, [525]),
    "one_process": (5, [508]),
    "waits_on": (5, [506], "--rule", "506"),
    "answers_twice": (5, [508, 509]),
    "healthy_collective": (5, []),
    "root_is_zero": (5, [542]),
    "never_aborts": (5, [545], "--rule", "545"),
    "healthy_membership": (5, []),
    "puts_anyway": (5, [562]),
    "leaves_keys": (5, [564]),
}


def check(name):
    level, rules, *options = MUTANTS[name]
    file = os.path.join(BINARY_DIR, "tests", "mutants", f"lib{name}.so")
    report = run(file, "--level", str(level), "--limit", "15", *options)
    got = [rule for rule in report.rules("fail") if rule not in PERHAPS.get(name, [])]
    if got == rules and report.status == (1 if rules else 0):
        return None
    return f"{name}: rules {got}, status {report.status}; expected {rules}\n    " + "\n    ".join(report.told() + [report.errors])


def main():
    names = sys.argv[1:] or list(MUTANTS)
    made = {f[3:-3] for f in os.listdir(os.path.join(BINARY_DIR, "tests", "mutants")) if f.endswith(".so")}
    wrong = [f"{name}: it is built, and nothing is expected of it" for name in sorted(made - set(MUTANTS))]
    with ThreadPoolExecutor(2) as pool:
        wrong += [w for w in pool.map(check, names) if w]
    print("\n".join(wrong) or f"{len(names)} plugins, each as expected")
    return 1 if wrong else 0


sys.exit(main())
