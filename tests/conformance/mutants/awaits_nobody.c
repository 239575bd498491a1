/* Waits where nobody is. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.waits_for_nobody = loop.leaves_early = 1)
