/* Whoever is in another process is nobody to it. */
#include "toy_transport.h"

TOY_TRANSPORT((void)0)
