/* Writes to the memory of a call that is over. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.writes_late = 1)
