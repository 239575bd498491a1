#!/usr/bin/env bash
# usage: headers_test.sh BUILD_FOLDER
# The installed headers, and nothing beside them, compile; and compilers lay them out as the golden layout says.
set -euo pipefail
abi=$THALWEG_SOURCE_DIR/tools/abi
work=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-headers.XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "${1:?usage: headers_test.sh BUILD_FOLDER}" --prefix "$work" --component headers >/dev/null
(cd "$THALWEG_SOURCE_DIR/c_api/include" && find . -name '*.h*' -print0) |
  xargs -0 -I{} cmp "$THALWEG_SOURCE_DIR/c_api/include/{}" "$work/include/{}" # all are there
"$abi/api" asserts >"$work/asserts.c"
"$abi/compile" "$work/include" --asserts "$work/asserts.c"
