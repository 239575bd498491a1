"""`thalweg new` from an installed Thalweg: its files build with the commands of their README, by GCC, and with their CMake files, by Clang, as
parts of one project. They pass their own tests and the conformance kit. Wrong names are rejected.
Plugins in C++ are built by one of the two compilers; with --full, all are built by both, and the kit is run on more."""

import concurrent.futures
import re
import shutil
import sys

from installed import PREFIX, WORK, check, finish, install, run

STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
# Kind, name, options, and whether the kit is run. It is not run where conformance_plugins_test runs it on the example that is the template, and
# on ops without a gradient, which have nothing that those with one lack.
TEMPLATES = [("op", "Cubic", "", False), ("op", "CubicGrad", "--c --gradient", True),
             ("op", "CubicCc", "--cpp", False), ("op", "CubicCcGrad", "--cpp --gradient", True),
             ("optimizer", "Lion", "", True), ("optimizer", "LionCc", "--cpp", True),
             ("resource", "Tally", "", True), ("resource", "TallyCc", "--cpp", True),
             ("device", "SOFT", "", True), ("device", "SOFT_CC", "--cpp", True),
             ("compiler", "pairs", "", True), ("compiler", "pairs_cc", "--cpp", True),
             ("rewriter", "folds", "--c", True), ("rewriter", "folds_cc", "--cpp", True),
             ("importer", "line", "", False), ("importer", "line_cc", "--cpp", True),
             ("profiler", "steps", "", False), ("profiler", "steps_cc", "--cpp", True),
             ("file_system", "ram", "", True), ("file_system", "ramcc", "--cpp", False),
             ("collective", "local", "", True), ("collective", "local_cc", "--cpp", True),
             ("membership", "meet", "", False), ("membership", "meetcc", "--cpp", True),
             ("transport", "fabric", "", False)]
EXAMPLES = {"line", "steps", "ramcc", "meet", "fabric"}  # the templates that are examples under other names
FULL = "--full" in sys.argv
# CubicCc, which has nothing that CubicCcGrad lacks, is in both, and is not built.
BY_GCC = set() if FULL else {"CubicCc", "CubicCcGrad", "SOFT_CC", "line_cc", "local_cc", "meetcc"}  # left out of the project
BY_CLANG = set() if FULL else {"CubicCc", "LionCc", "TallyCc", "pairs_cc", "folds_cc", "ramcc"}  # the commands of their README are not run
WITHOUT_KIT = set() if FULL else {"Lion", "Tally", "pairs", "folds", "local"}  # the kit is run on those in C++


def warnings(name):
    return "-Wall -Wextra -Werror" if name in EXAMPLES else STRICT


def folder(name):
    return WORK / "plugins" / name


def written():
    """Writes all plugins, beside one another, and the project that has them as parts."""
    (WORK / "plugins").mkdir()
    status, said = run("\n".join(f"thalweg new {kind} {name} {options}" for kind, name, options, _ in TEMPLATES), WORK / "plugins")
    check(status == 0, "thalweg new writes each kind of plugin", said)
    # Without the helper's own choice, the C++ plugins would be compiled as C++14.
    lines = ["cmake_minimum_required(VERSION 3.20)", "project(all LANGUAGES C CXX)", "set(CMAKE_CXX_STANDARD 14)"]
    for name in (name for _, name, _, _ in TEMPLATES if name not in BY_GCC):
        lines += [f'set(CMAKE_{language}_FLAGS "{warnings(name)}")' for language in ("C", "CXX")] + [f"add_subdirectory({name})"]
    (WORK / "plugins/CMakeLists.txt").write_text("\n".join(lines) + "\n")
    return status == 0


def commands_of(name):
    """Returns the shell block of README.md, with the compilers of this test."""
    commands = re.search(r"^```sh\n(.*?)^```$", (folder(name) / "README.md").read_text(), re.M | re.S)[1]
    return re.sub(r"^(cc|c\+\+) ", lambda m: f"{'gcc' if m[1] == 'cc' else 'g++'} {warnings(name)} ", commands, flags=re.M)


def by_readme(kind, name, options, kit):
    """Runs the shell block of README.md unchanged, except that warnings are on, and that the kit is left out where it has nothing to add."""
    page = (folder(name) / "README.md").read_text()
    commands = commands_of(name)
    asks = len(re.findall(r"plugins check|thalweg-conformance", commands))
    lines = (folder(name) / "CMakeLists.txt").read_text().splitlines()
    texts = [("{{" not in page, f"{name}: README.md is filled in", page),
             (f"prefix={PREFIX}" in page, f"{name}: README.md names the installation", page),
             (asks == 1, f"{name}: README.md asks the kit once", page),
             (len(lines) == 4, f"{name}: its CMake file has 4 lines", str(lines))]
    if name in BY_CLANG:
        return texts
    kit = kit and name not in WITHOUT_KIT
    if not kit:
        commands = re.sub(r".*(plugins check|thalweg-conformance).*\n", "", commands)
    status, said = run(commands, folder(name))
    return [*texts,
            (status == 0 and "FAILED" not in said and "passed  " in said,
             f"{kind} {name} {options}: builds, passes its test{' and the kit' if kit else ''}", said),
            (not kit or " 0 failed:" in said or not (PREFIX / "bin/thalweg-conformance").exists(), f"{name}: the kit was asked", said)]


def by_cmake():
    """Builds all plugins as one project."""
    compilers = "-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++" if shutil.which("clang++") else ""
    status, said = run(f"cmake -B build -G Ninja {compilers} -DCMAKE_PREFIX_PATH={PREFIX} && cmake --build build", WORK / "plugins")
    return [(status == 0, f"all plugins with CMake{' and Clang' if compilers else ''}", said)]


def cmake_passes(kind, name, kit):
    library = WORK / f"plugins/build/{name}/lib{name}.so"
    test = f"./test {library}"
    if name in BY_CLANG:
        test = "".join(re.findall(r"^prefix=.*\n|^gcc .* -o test .*\n", commands_of(name), re.M)) + test
    asks = f" && thalweg plugins check {library}" if kit and name in BY_CLANG and (PREFIX / "bin/thalweg-conformance").exists() else ""
    status, said = run(test + asks, folder(name))
    return [(status == 0, f"{name}: that of CMake passes the same test{' and the kit' if asks else ''}", said)]


def python_trains(name):
    """Runs the class of an optimizer, if the installation has the Python package."""
    package = next(PREFIX.glob("lib/**/thalweg/python"), None)
    if package is None:
        print(f"skipped  {name.lower()}.py: the Python package is not installed")
        return []
    status, said = run(f"/usr/bin/python3 -B {name.lower()}.py ./lib{name}.so", folder(name), PYTHONPATH=str(package))
    return [(status == 0 and "w = 3.0, b = -1.0" in said, f"{name.lower()}.py trains a line", said)]


def one_command_is_enough(name):
    """Builds the plugin with the header folder and nothing else of the installation."""
    run(f"cp -r {PREFIX}/include alone", folder(name))
    status, said = run(f"cc -std=c11 -shared -fPIC -Ialone {name}.c -o libalone.so && ldd libalone.so", folder(name))
    return [(status == 0 and "thalweg" not in said.replace("libalone", ""), "the header folder is enough", said)]


def refuses(command, part, status=2):
    found, said = run(command, WORK)
    check(found == status and part in said and said.count("\n") == 1, f"{command}: refused", said)


def main():
    install()
    if written():
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(by_cmake), *(pool.submit(by_readme, *template) for template in TEMPLATES)]
            passed = [check(*result) for job in jobs for result in job.result()]
            if all(passed):
                jobs = [pool.submit(cmake_passes, kind, name, kit) for kind, name, _, kit in TEMPLATES if name not in BY_GCC]
                jobs += [pool.submit(python_trains, "Lion"), pool.submit(one_command_is_enough, "CubicGrad")]
                for job in jobs:
                    for result in job.result():
                        check(*result)
    refuses("thalweg new op cubic", "'cubic' cannot name an op")
    refuses("thalweg new op ../X", "'../X' cannot name an op")
    refuses("thalweg new op ''", "'' cannot name an op")
    refuses("thalweg new device Soft", "'Soft' cannot name a device")
    refuses("thalweg new transport Fabric", "'Fabric' cannot name a transport")
    refuses("thalweg new importer Line", "'Line' cannot name an importer")
    refuses("thalweg new file_system test", "'test' cannot name a file_system")
    refuses("thalweg new kernel X", "'kernel' is no kind of plugin; there are: op, ")
    refuses("thalweg new op", "missing argument")
    refuses("thalweg new op Cubic --fast", "unknown option '--fast'")
    refuses("thalweg new op Cubic --c --cpp", "exclude each other")
    refuses("thalweg new device HARD --gradient", "--gradient is for ops")
    refuses("thalweg new transport wire --cpp", "there is no template of a transport in C++")
    refuses("thalweg new op MatMul", "op 'MatMul' is there already, of plugin 'org.thalweg", 1)
    refuses("thalweg new device CPU", "device kind 'CPU' is there already, of plugin 'org.thalweg.cpu'", 1)
    refuses("cd plugins && thalweg new op Cubic", "cannot make the folder 'Cubic': there is one already", 1)
    finish()


main()
