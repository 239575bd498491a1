/* Does not reach peers in other processes. */
#include "toy_transport.h"

TOY_TRANSPORT((void)0)
