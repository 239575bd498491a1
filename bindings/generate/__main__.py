"""Makes the low level of a binding, and its functions of ops, from descriptions of the library.

usage: python3 bindings/generate LANGUAGE --api API.JSON [--ops DESCRIPTION.JSON] --out FOLDER
       python3 bindings/generate --check --api API.JSON

API.JSON is c_api/api.json, which tools/abi/api makes from the headers; DESCRIPTION.JSON is what thalweg_describe prints. The folder
bindings/LANGUAGE/template has the words of the language: template.py, and texts in which @name@ stands for a generated part.
--check generates the low level of all languages in a folder of its own and says which language lacks which function."""
import argparse
import importlib.util
import pathlib
import re
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import api as api_module  # noqa: E402
import ops as ops_module  # noqa: E402

LANGUAGES = sorted(p.parent.parent.name for p in here.parent.glob("*/template/template.py"))


def template_of(language):
    path = here.parent / language / "template" / "template.py"
    spec = importlib.util.spec_from_file_location(f"template_{language}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fill(language, name, parts):
    """The text of a template with its parts in place of their names."""
    text = (here.parent / language / "template" / name).read_text()
    used = set()

    def part(match):
        used.add(match[1])
        return parts[match[1]]

    text = re.sub(r"@(\w+)@", lambda m: part(m) if m[1] in parts else m[0], text)
    if set(parts) - used:
        raise SystemExit(f"generate: {language}/template/{name} has no place for {', '.join(sorted(set(parts) - used))}")
    return text


def generate(language, api, ops, out):
    """Writes the files of a language; returns their names and texts."""
    template = template_of(language)
    files = template.low(api)
    if ops is not None:
        files.update(template.ops(ops))
    written = {}
    for name, (source, parts) in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = fill(language, source, parts)
        if not path.exists() or path.read_text() != text:  # keeps the time of an unchanged file, for builds
            path.write_text(text)
        written[name] = text
    return written


def check(api):
    """Says which language is behind; returns how many faults there are."""
    faults = 0
    for language in LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                words = set(re.findall(r"\w+", "".join(generate(language, api, None, pathlib.Path(folder)).values())))
            except api_module.Unknown as e:
                print(f"{language}: its template has no words for {e}; teach bindings/{language}/template/template.py")
                faults += 1
                continue
        mark = getattr(template_of(language), "mark", lambda name: name)
        missing = [f["name"] for f in api.functions if mark(f["name"]) not in words]
        missing += [c["name"] for c in api.constants if not ({c["name"], api_module.camel(c["name"].lower())} & words or mark(c["name"]) in words)]
        for name in missing:
            print(f"{language}: lacks {name}; see bindings/{language}/template/template.py")
        faults += len(missing)
        print(f"{language}: {len(api.functions) - len([m for m in missing if m.startswith('tw_')])} of {len(api.functions)} functions")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("language", nargs="?", choices=LANGUAGES)
    parser.add_argument("--api", required=True, type=pathlib.Path)
    parser.add_argument("--ops", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    api = api_module.Api(arguments.api)
    if arguments.check:
        sys.exit(bool(check(api)))
    if not arguments.language or not arguments.out:
        parser.error("LANGUAGE and --out are needed, or --check")
    try:
        generate(arguments.language, api, ops_module.load(arguments.ops) if arguments.ops else None, arguments.out)
    except api_module.Unknown as e:
        sys.exit(f"generate: {arguments.language}: no words for {e}; teach bindings/{arguments.language}/template/template.py")


if __name__ == "__main__":
    main()
