/* The program that does nothing: what a start costs by itself, and what a process weighs when it waits. usage: empty [wait] */
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
