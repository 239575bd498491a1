/* Ignores cancel. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.never_cancels = loop.leaves_early = 1)
