# Checks that the rules named here, and no others, catch each broken plugin of mutants/, and that the kit's
# exit status reports it. Each rule has a plugin that breaks it, and a plugin without a fault on which it ran,
# or a reason for which none does.
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from kit import BINARY_DIR, KIT, run

# Cases with the results of the op of toy.h, as its author would supply them.
HALF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants", "half.cases.json")
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants", "sample.toy")

# Rules that a mutant may break too, depending on the timing of threads.
PERHAPS = {"blocks_overlap": [107]}

# Rules that no plugin can break, with the reason.
UNBROKEN = {}

# Rules that have nothing to check in any plugin without a fault, with the reason.
UNRUN = {
    218: "none of them has a kernel that declines nodes",
    308: "none of them has an asynchronous kernel that the kit can call",
    527: "none of them locks folders",
}

# Other plugins without a fault, for rules that the healthy ones have nothing for: the file, options.
SOUND = [
    ("tests/guides/libpipes.so",),  # transports
    ("tests/guides/libten.so", "--rule", "214"),
    ("tests/devices/libfake.so", "--rule", "318"),
    ("tests/mutants/libhealthy.so", "--rule", "213", "--cases", HALF),
]

# Rules that the kit cannot check on every subject of a plugin, so that the plugin does not keep the level.
SKIPPED = {
    "healthy_later": [12],  # written for a later host than this one, which the kit cannot play
    "refuses_all_shapes": [202, 203, 204, 205, 206, 207, 208, 210, 215, 216, 217, 309, 310, 319],  # no case can be generated for its op
}

# name: level, rules that it breaks, options
MUTANTS = {
    "healthy": (5, []),
    "healthy_later": (5, []),
    "healthy_minors": (5, []),
    "healthy_types": (5, []),
    "healthy_streams": (5, []),
    "healthy_sets": (5, []),
    "healthy_state": (5, []),
    "healthy_variables": (5, []),
    "needs_more": (0, [1]),
    "exports_more": (0, [2]),
    "imports_ours": (0, [3]),
    "opens_at_load": (0, [4, 10]),
    "query_counts": (0, [5]),
    "no_version": (0, [6]),
    "no_init": (0, [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
    "unknown_type": (0, [7]),
    "kernel_of_nothing": (0, [7, 8, 9, 12, 13]),
    "one_runtime": (0, [8]),
    "thread_left": (0, [9, 10]),
    "grows": (0, [10, 15]),
    "moves_folder": (0, [14]),
    "handles_signals": (0, [14]),
    "flushes_denormals": (0, [14]),
    "greets": (0, [14]),
    "loses_status": (0, [10, 15]),
    "loses_little": (0, [15]),
    "swallows": (0, [11]),
    "wants_newest": (0, [13]),
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
    "looks_nowhere": (2, [201]),
    "own_differs": (2, [201]),
    "drifts": (2, [202]),
    "promises_scalar": (2, [203]),
    "refuses_all_shapes": (5, []),
    "wrong_gradient": (2, [204]),
    "gradient_of_nothing": (2, [204]),
    "gives_no_dx": (2, [204]),
    "keeps_frame": (2, [205]),
    "one_too_far": (2, [206]),
    "one_scratch": (2, [207]),
    "keeps_tensor": (2, [208, 210]),
    "takes_any_resource": (2, [209]),
    "counts_readers": (2, [207]),
    "keeps_objects": (2, [210]),
    "types_of_nobody": (2, [212]),
    "not_as_said": (2, [213], "--cases", HALF),
    "reads_late": (2, [214]),
    "reads_beyond": (2, [215]),
    "reads_ahead": (2, [215]),
    "leaves_negative": (2, [216]),
    "trusts_scratch": (2, [216]),
    "changes_its_mind": (2, [218]),
    "wants_to_know": (2, [218]),
    "healthy_limits": (5, []),
    "passes_limit": (2, [219]),
    "shrinks": (2, [219]),
    "keeps_line": (0, [15]),
    "ends_twice": (3, [308]),
    "says_what_it_does": (2, [217]),
    "rounds_up": (2, [217]),
    "allocates_short": (2, [206]),
    "ignores_layout": (2, [201]),
    "ignores_broadcast": (2, [201]),
    "saves_half": (2, [211]),
    "believes_bytes": (2, [211]),
    "signals_at_once": (3, [301, 302, 303, 304]),
    "never_waits": (3, [303, 304]),
    "copies_at_once": (3, [304]),
    "completes_and_fails": (3, [308]),
    "reads_host_late": (3, [318]),
    "naps": (3, [319]),
    "silent_after_failure": (3, [305]),
    "gives_up_work": (3, [306]),
    "leaves_threads": (3, [307]),
    "completes_twice": (3, [308]),
    "trusts_host": (3, [309]),
    "renames_cancel": (3, [310]),
    "pins_anywhere": (3, [311]),
    "peer_from_start": (3, [312]),
    "event_at_once": (3, [313]),
    "numbers_alike": (3, [314]),
    "records_nothing": (3, [315]),
    "updates_nothing": (3, [315]),
    "profiles_on": (3, [316]),
    "takes_beyond": (3, [317]),
    "healthy_compiler": (5, []),
    "claims_twice": (4, [401]),
    "refuses_mutely": (4, [402]),
    "mixes_inputs": (4, [403, 407, 408]),
    "saves_sums": (4, [404]),
    "any_tag": (4, [405]),
    "fills_up": (4, [406]),
    "keeps_part": (4, [407]),
    "healthy_rewriter": (5, []),
    "reads_itself": (4, [421]),
    "swaps_operands": (4, [422, 423]),
    "remembers_part": (4, [423]),
    "insists": (4, [424]),
    "healthy_files": (5, []),
    "reads_from_start": (5, [521, 528]),
    "creates_again": (5, [522]),
    "renames_nothing": (5, [523]),
    "short_reads": (5, [524]),
    "rename_stops": (5, [525]),
    "lists_twice": (5, [526]),
    "lets_all_in": (5, [527]),
    "one_reader": (5, [528]),
    "one_identity": (5, [529]),
    "one_process": (5, [508]),
    "says_nowhere": (5, [501], "--rule", "501"),
    "awaits_nobody": (5, [502], "--rule", "502"),
    "answers_twice": (5, [503], "--rule", "503"),
    "cuts_bodies": (5, [504], "--rule", "504"),
    "answers_in_order": (5, [505], "--rule", "505"),
    "never_cancels": (5, [506], "--rule", "506"),
    "writes_late": (5, [507], "--rule", "507"),
    "needs_room": (5, [509], "--rule", "509"),
    "keeps_calls": (5, [510], "--rule", "510"),
    "leaves_early": (5, [511], "--rule", "511"),
    "calls_inside": (5, [512], "--rule", "512"),
    "sleeps_on": (5, [513], "--rule", "513"),
    "healthy_collective": (5, []),
    "sums_most": (5, [541]),
    "root_is_zero": (5, [542]),
    "gathers_one": (5, [543]),
    "scatters_least": (5, [544]),
    "never_aborts": (5, [545], "--rule", "545"),
    "waits_for_all": (5, [546], "--rule", "546"),
    "healthy_membership": (5, []),
    "cuts_at_zero": (5, [561]),
    "puts_anyway": (5, [562]),
    "tells_all": (5, [563]),
    "leaves_keys": (5, [564]),
    "keys_of_nothing": (5, [564, 565]),
    "healthy_importer": (5, [], "--at", SAMPLE),
    "guesses_anew": (5, [581, 582], "--at", SAMPLE),
    "loads_anything": (5, [582], "--at", SAMPLE),
    "counts_loads": (5, [583], "--at", SAMPLE),
    "healthy_profiler": (5, []),
    "knows_all_kinds": (5, [591, 592, 593]),
    "keeps_names": (5, [592]),
    "one_profile": (5, [593]),
    "leaves_files": (5, [594]),
}


# The rules that were checked, and kept, on plugins without a fault. A rule that never runs would pass all of them.
ran = set()


def check(name):
    level, rules, *options = MUTANTS[name]
    file = os.path.join(BINARY_DIR, "tests", "mutants", f"lib{name}.so")
    report = run(file, "--level", str(level), "--limit", "15", *options)
    if not rules:
        ran.update(report.rules("pass"))
    got = [rule for rule in report.rules("fail") if rule not in PERHAPS.get(name, [])]
    skipped = [] if rules else report.rules("skip")  # a broken rule may prevent the check of others
    wanted = SKIPPED.get(name, [])
    if got == rules and skipped == wanted and report.status == (1 if rules or wanted else 0):
        return None
    return f"{name}: rules {got}, skipped {skipped}, status {report.status}; expected {rules}, skipped {wanted}\n    " + "\n    ".join(
        report.told() + report.told("skip") + [report.errors])


def run_sound(file, *options):
    report = run(os.path.join(BINARY_DIR, file), "--level", "5", "--limit", "30", *options)
    ran.update(report.rules("pass"))
    return None if report.status == 0 else f"{file}: status {report.status}\n    " + "\n    ".join(report.told() + report.told("skip") + [report.errors])


# Some mutants break their rule only with a certain timing of threads, so they are checked a second time. Healthy plugins are checked once.
def check_again(name):
    wrong = check(name)
    if wrong and MUTANTS[name][1]:
        print(f"tried again: {wrong}", flush=True)
        wrong = check(name)
    return wrong


def all_rules():
    listed = subprocess.run([KIT, "--list"], capture_output=True, text=True, check=True).stdout
    return {int(n) for n in re.findall(r"^(\d{3}) ", listed, re.MULTILINE)}


def unrun():
    rules = all_rules()
    return [f"rule {n:03}: it has run on no plugin without a fault" for n in sorted(rules - ran - set(UNRUN))] + [
        f"rule {n:03}: there is a reason why it runs on no plugin without a fault, but it does, or there is no such rule"
        for n in sorted(set(UNRUN) & ran | set(UNRUN) - rules)
    ]


def unbroken():
    rules = all_rules()
    broken = {rule for _, rules, *_ in MUTANTS.values() for rule in rules}
    return [f"rule {n:03}: no mutant breaks it" for n in sorted(rules - broken - set(UNBROKEN))] + [
        f"rule {n:03}: there is a reason why no mutant breaks it, but there is no such rule" for n in sorted(set(UNBROKEN) - rules)
    ]


def main():
    names = sys.argv[1:] or list(MUTANTS)
    made = {f[3:-3] for f in os.listdir(os.path.join(BINARY_DIR, "tests", "mutants")) if f.endswith(".so")}
    wrong = [f"{name}: it is built, and nothing is expected of it" for name in sorted(made - set(MUTANTS))]
    wrong += unbroken()
    with ThreadPoolExecutor(4) as pool:  # a check waits most of the time
        wrong += [w for w in pool.map(check_again, names) if w]
        if len(names) == len(MUTANTS):
            wrong += [w for w in pool.map(lambda s: run_sound(*s), SOUND) if w]
    wrong += unrun() if len(names) == len(MUTANTS) else []
    print("\n".join(wrong) or f"{len(names)} plugins, each as expected")
    return 1 if wrong else 0


sys.exit(main())
