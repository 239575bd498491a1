/* The smallest program against an installed Thalweg: is this the version that the package said? */
#include <stdio.h>
#include <string.h>

#include <thalweg/thalweg.h>

int main(int argc, char** argv) {
  const char* version = tw_version_string();
  if (argc > 1 && strcmp(version, argv[1]) != 0) {
    fprintf(stderr, "library is %s, package says %s\n", version, argv[1]);
    return 1;
  }
  printf("C: Thalweg %s\n", version);
  return 0;
}
