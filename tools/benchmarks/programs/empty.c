/* A program that does nothing: measures the cost of a start and the memory of a waiting process.
 * usage: empty [wait] */
#include <stdio.h>

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    puts("ready");
    fflush(stdout);
    getchar();
  }
  return 0;
}
