"""`thalweg new` from an installed Thalweg: its files build with the commands of their README and with their CMake file, by GCC and Clang,
and pass their own test and the conformance kit. Wrong names are rejected."""

import concurrent.futures
import re
import shutil

from installed import PREFIX, WORK, check, finish, install, run

COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
TEMPLATES = [("op", "Cubic", ""), ("op", "CubicGrad", "--c --gradient"), ("op", "CubicCc", "--cpp"), ("op", "CubicCcGrad", "--cpp --gradient"),
             ("device", "SOFT", ""), ("transport", "fabric", ""), ("rewriter", "folds", "")]
WARNINGS = {"op": "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror", "transport": "-Wall -Wextra -Werror"}


def by_readme(kind, name, options, cc, cxx):
    """Runs the shell block of README.md unchanged, except that cc and c++ name other compilers and warnings are on."""
    folder = WORK / f"{name}-{cc}"
    folder.mkdir()
    status, said = run(f"thalweg new {kind} {name} {options}", folder)
    if status:
        return [(False, f"thalweg new {kind} {name} {options}", said)]
    page = (folder / name / "README.md").read_text()
    commands = re.search(r"^```sh\n(.*?)^```$", page, re.M | re.S)[1]
    commands = re.sub(r"^(cc|c\+\+) ", lambda m: f"{cc if m[1] == 'cc' else cxx} {WARNINGS.get(kind, WARNINGS['op'])} ", commands, flags=re.M)
    status, said = run(commands, folder / name)
    return [("{{" not in page, f"{name}: README.md is filled in", page),
            (f"prefix={PREFIX}" in page, f"{name}: README.md names the installation", page),
            (status == 0 and "FAILED" not in said, f"{name} {options} with {cc}: builds, passes its test and the kit", said),
            (" 0 failed:" in said or not (PREFIX / "bin/thalweg-conformance").exists(), f"{name} with {cc}: the kit was asked", said)]


def by_cmake(kind, name, options):
    folder = WORK / f"{name}-gcc" / name
    lines = (folder / "CMakeLists.txt").read_text().splitlines()
    test = f"thalweg plugins check build/lib{name}.so" if kind in ("transport", "rewriter") else f"./test build/lib{name}.so"
    status, said = run(f"cmake -B build -G Ninja -DCMAKE_PREFIX_PATH={PREFIX} && cmake --build build && {test}", folder)
    return [(len(lines) == 4, f"{name}: its CMake file has 4 lines", str(lines)), (status == 0, f"{name} {options} with CMake", said)]


def one_command_is_enough(name):
    """Builds the plugin with the header folder and nothing else of the installation."""
    folder = WORK / f"{name}-gcc" / name
    run(f"cp -r {PREFIX}/include alone", folder)
    status, said = run(f"cc -std=c11 -shared -fPIC -Ialone {name}.c -o libalone.so && ldd libalone.so", folder)
    return [(status == 0 and "thalweg" not in said.replace("libalone", ""), "the header folder is enough", said)]


def refuses(command, part, status=2):
    found, said = run(command, WORK)
    check(found == status and part in said and said.count("\n") == 1, f"{command}: refused", said)


def main():
    install()
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for cc, cxx in COMPILERS:
            if not shutil.which(cc) or not shutil.which(cxx):
                print(f"skipped  {cc}: not installed")
                continue
            jobs += [pool.submit(by_readme, *template, cc, cxx) for template in TEMPLATES]
        for job in jobs:
            for result in job.result():
                check(*result)
        for job in [pool.submit(by_cmake, *template) for template in (TEMPLATES[1], TEMPLATES[3], *TEMPLATES[4:])]:
            for result in job.result():
                check(*result)
    for result in one_command_is_enough("CubicGrad"):
        check(*result)
    refuses("thalweg new op cubic", "'cubic' cannot name an op")
    refuses("thalweg new op ../X", "'../X' cannot name an op")
    refuses("thalweg new op ''", "'' cannot name an op")
    refuses("thalweg new device Soft", "'Soft' cannot name a device")
    refuses("thalweg new transport Fabric", "'Fabric' cannot name a transport")
    refuses("thalweg new rewriter Folds", "'Folds' cannot name a rewriter")
    refuses("thalweg new kernel X", "'kernel' is neither op")
    refuses("thalweg new op", "missing argument")
    refuses("thalweg new op Cubic --fast", "unknown option '--fast'")
    refuses("thalweg new op Cubic --c --cpp", "exclude each other")
    refuses("thalweg new device HARD --gradient", "--gradient is for ops")
    refuses("thalweg new op MatMul", "op 'MatMul' is there already, of plugin 'org.thalweg", 1)
    refuses("thalweg new device CPU", "device kind 'CPU' is there already, of plugin 'org.thalweg.cpu'", 1)
    refuses("cd Cubic-gcc && thalweg new op Cubic", "cannot make the folder 'Cubic': there is one already", 1)
    finish()


main()
