"""Compares bindings/onnxruntime with ONNX Runtime's own library.

usage: peer_test.py LIBRARY        (libonnxruntime.so.1 of the build tree; needs the onnxruntime package and a C compiler)

The test programs of this folder are compiled and linked with ONNX Runtime's library. Each binary runs with that library, and then with
ours in the library's place (LD_LIBRARY_PATH). Every case must pass with both, and report.c must print the same text with both.
cxx.cc, a program over ONNX Runtime's C++ headers, is compiled if the folder THALWEG_ONNXRUNTIME_INCLUDE or /usr/include/onnxruntime has
them; ONNX Runtime's Python package does not bring them.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
HEADERS = HERE.parents[2] / 'bindings/onnxruntime/include'
CXX_HEADERS = [pathlib.Path(folder) for folder in (os.environ.get('THALWEG_ONNXRUNTIME_INCLUDE'), '/usr/include/onnxruntime') if folder]
LIBTHALWEG = pathlib.Path(sys.argv[1]).resolve().parents[2]  # a loader looks beside the link, not beside the file
PROGRAMS = ['values_test.c', 'run_test.c', 'misuse_test.c', 'report.c']


def compiled(source, headers, library, program):
    compiler = ['cc', '-std=c11'] if source.suffix == '.c' else ['c++', '-std=c++17']
    subprocess.run([*compiler, '-I', headers, source, '-o', program, library, '-lpthread'], check=True)


def run(program, folder):
    env = {**os.environ, 'LD_LIBRARY_PATH': f'{folder}:{LIBTHALWEG}'}
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    package = pathlib.Path(importlib.util.find_spec('onnxruntime').submodule_search_locations[0])
    found = sorted((package / 'capi').glob('libonnxruntime.so.*'))
    if len(found) != 1:
        sys.exit(f'the package in {package} has {len(found)} libraries libonnxruntime.so.*; expected one')
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours, theirs = folder / 'ours', folder / 'theirs'
        for place, target in ((ours, library), (theirs, found[0])):
            place.mkdir()
            (place / 'libonnxruntime.so.1').symlink_to(target)
        programs = [(HERE / name, HEADERS) for name in PROGRAMS]
        cxx = [headers for headers in CXX_HEADERS if (headers / 'onnxruntime_cxx_api.h').exists()]
        if cxx:
            programs.append((HERE / 'cxx.cc', cxx[0]))
        else:
            print("cxx.cc is skipped: ONNX Runtime's C++ headers are not there; THALWEG_ONNXRUNTIME_INCLUDE names their folder")
        for source, headers in programs:
            program = folder / source.stem
            compiled(source, headers, theirs / 'libonnxruntime.so.1', program)
            results = {place.name: run(program, place) for place in (theirs, ours)}
            for name, (code, text, errors) in results.items():
                print(f'{source.name} with {name}: exit status {code}, {len(text.splitlines())} lines')
                if code != 0 or not text:
                    failed.append(source.name)
                    print(text[-4000:], errors[-4000:], sep='\n')
            if results['ours'][1] != results['theirs'][1]:
                failed.append(source.name)
                print('the texts differ', results['theirs'][1], 'and', results['ours'][1], sep='\n')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
