#!/usr/bin/env bash
# usage: run.sh BUILD_FOLDER
# Installs the build tree, moves the installed tree, and uses it from its new place: find_package from C and C++, pkg-config,
# the command line. Fails if a file still refers to the old place.
set -euo pipefail
build=$(realpath "${1:?usage: run.sh BUILD_FOLDER}")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/thalweg-consumer.XXXXXX")
trap 'rm -rf "$work"' EXIT

if grep -qE '^THALWEG_(SANITIZE|FUZZ|COVERAGE):[A-Z]+=(.*[a-z].*|ON)$' "$build/CMakeCache.txt"; then
  echo "skipped: an instrumented library can only be used by instrumented programs"
  exit 77
fi
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
cxx=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/second"
prefix=$work/second
unset THALWEG_PLUGIN_PATH LD_LIBRARY_PATH # the installed tree must find its own plugins

echo "-- nothing in the installed text files names the build tree or the first place"
if grep -rIlF -e "$build" -e "$work/first" "$prefix"; then
  echo "these files are not relocatable"
  exit 1
fi

echo "-- find_package"
cmake -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/build"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error

echo "-- pkg-config"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046  # splits the flags into words
"$cc" -std=c11 -Wall -Werror "$here/consumer.c" $(pkg-config --cflags --libs thalweg) -Wl,-rpath,"$prefix/lib" -o "$work/by_pkgconfig"
"$work/by_pkgconfig" "$(pkg-config --modversion thalweg)"

echo "-- the headers as one text, as bindings/README.md makes it for parsers"
recipe=$(sed -n '/^    echo /,/^$/s/^    //p' "$here/../../bindings/README.md")
{
  echo '#include <stdint.h>'
  prefix=$prefix bash -euo pipefail -c "$recipe"
} >"$work/all.c"
"$cc" -std=c99 -pedantic -Wall -Werror -c "$work/all.c" -o "$work/all.o"
grep -q 'void tw_session_destroy(' "$work/all.c"

if [ -x "$prefix/bin/thalweg" ]; then
  echo "-- command line"
  "$prefix/bin/thalweg" --version
fi
