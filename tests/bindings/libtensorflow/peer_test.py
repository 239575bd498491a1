"""Compares bindings/libtensorflow with TensorFlow's own library.

usage: peer_test.py LIBRARY        (libtensorflow.so.2 of the build tree; needs the tensorflow package and a C compiler)

1. Every function that TensorFlow's headers export is in our library.
2. The test programs of this folder are compiled against TensorFlow's headers and linked with its library. Each binary runs with that
   library, and then with ours in the library's place (LD_LIBRARY_PATH). Every case must pass with both.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
HEADERS = ['c_api.h', 'tf_buffer.h', 'tf_datatype.h', 'tf_status.h', 'tf_tensor.h', 'tf_tstring.h', 'c_api_experimental.h', 'eager/c_api.h',
           'eager/c_api_experimental.h']
LIBTHALWEG = pathlib.Path(sys.argv[1]).resolve().parents[2]  # a loader looks beside the link, not beside the file
LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2']
MODEL = '''
import sys
import tensorflow as tf
class Model(tf.Module):
    def __init__(self):
        self.b = tf.Variable(0.5)
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def __call__(self, x):
        return {"y": 2 * x + self.b}
m = Model()
tf.saved_model.save(m, sys.argv[1], signatures=m.__call__)
'''


def check_symbols(headers, library):
    """Returns the number of functions; ends the program if one is missing."""
    exported = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    ours = set(re.findall(r' T (\w+)$', exported, re.M))
    wanted = set()
    for header in HEADERS:
        text = (headers / 'tensorflow/c' / header).read_text()
        text = re.sub(r'//[^\n]*|/\*.*?\*/', ' ', text, flags=re.S)
        wanted |= set(re.findall(r'TF_CAPI_EXPORT[^;{}]*?\b(TFE?_\w+)\s*\(', text))
    missing = sorted(wanted - ours)
    if missing or len(wanted) < 400:
        sys.exit(f'of {len(wanted)} exported functions these are missing: {missing}')
    return len(wanted)


def run(program, folder, env):
    done = subprocess.run([program], env={**env, 'LD_LIBRARY_PATH': f'{folder}:{LIBTHALWEG}'}, capture_output=True, text=True, timeout=300)
    return done.returncode, [line for line in done.stdout.splitlines() if line.endswith((': passed', ': failed'))], done.stderr


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    package = pathlib.Path(importlib.util.find_spec('tensorflow').submodule_search_locations[0])
    headers = package / 'include'
    print(check_symbols(headers, library), 'exported functions are there')
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours, theirs = folder / 'ours', folder / 'theirs'
        for place, target in ((ours, lambda name: library), (theirs, lambda name: package / name)):
            place.mkdir()
            for name in LIBRARIES:
                (place / name).symlink_to(target(name))
        subprocess.run([sys.executable, '-c', MODEL, folder / 'model'], check=True, capture_output=True)
        env = {**os.environ, 'TF_CPP_MIN_LOG_LEVEL': '3', 'THALWEG_SAVED_MODEL': str(folder / 'model'),
               'THALWEG_SAVED_MODEL_INPUT': 'serving_default_x', 'THALWEG_SAVED_MODEL_OUTPUT': 'StatefulPartitionedCall'}
        for source in sorted(HERE.glob('*_test.c')):
            program = folder / source.stem
            subprocess.run(['cc', '-std=gnu11', '-I', headers, source, '-o', program, *(str(theirs / name) for name in LIBRARIES)], check=True)
            results = {place.name: run(program, place, env) for place in (theirs, ours)}
            for name, (code, lines, errors) in results.items():
                print(f'{source.stem} with {name}: {sum(line.endswith("passed") for line in lines)} of {len(lines)} cases')
                bad = [line for line in lines if line.endswith('failed')]
                if code != 0 or bad or not lines:
                    failed.append(source.stem)
                    print(f'exit status {code}', *bad, errors[-4000:], sep='\n')
            if results['ours'][1] != results['theirs'][1]:
                failed.append(source.stem)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
