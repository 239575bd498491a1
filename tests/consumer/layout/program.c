#include <small.h>

int main(void) { return small() != 7; }
