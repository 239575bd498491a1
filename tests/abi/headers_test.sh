#!/usr/bin/env bash
# usage: headers_test.sh BUILD_FOLDER
# Checks that the installed headers compile without any other file, and that compilers lay them out as in the golden layout.
set -euo pipefail
abi=$THALWEG_SOURCE_DIR/tools/abi
work=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-headers.XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "${1:?usage: headers_test.sh BUILD_FOLDER}" --prefix "$work" --component headers >/dev/null
missing=
while read -r header; do
  cmp -s "$THALWEG_SOURCE_DIR/c_api/include/$header" "$work/include/$header" || missing+=" $header"
done < <(cd "$THALWEG_SOURCE_DIR/c_api/include" && find thalweg -name '*.h*')
if [ "$missing" ]; then
  echo "not installed as they are in the source tree:$missing; list them in c_api/CMakeLists.txt" >&2
  exit 1
fi
"$abi/api" asserts >"$work/asserts.c"
"$abi/compile" "$work/include" --asserts "$work/asserts.c"
