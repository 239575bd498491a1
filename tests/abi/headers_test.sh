#!/usr/bin/env bash
# usage: headers_test.sh BUILD_FOLDER
# Checks that the installed headers compile without any other file, and that compilers lay them out as in the golden layout.
set -euo pipefail
abi=$THALWEG_SOURCE_DIR/tools/abi
work=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-headers.XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "${1:?usage: headers_test.sh BUILD_FOLDER}" --prefix "$work" --component headers >/dev/null
(cd "$THALWEG_SOURCE_DIR/c_api/include" && find . -name '*.h*' -print0) |
  xargs -0 -I{} cmp "$THALWEG_SOURCE_DIR/c_api/include/{}" "$work/include/{}" # every header is installed
"$abi/api" asserts >"$work/asserts.c"
"$abi/compile" "$work/include" --asserts "$work/asserts.c"
