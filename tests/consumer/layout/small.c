#include "small.h"

int small(void) { return 7; }
