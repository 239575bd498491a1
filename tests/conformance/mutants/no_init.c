/* A descriptor without init. */
#include "toy.h"

TOY_PLUGIN(NULL, NULL)
