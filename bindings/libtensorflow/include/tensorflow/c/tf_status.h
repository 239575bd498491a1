/* TF_Status, for programs that include this part of the API alone. All declarations are in c_api.h. */
#ifndef THALWEG_TENSORFLOW_TF_STATUS_H
#define THALWEG_TENSORFLOW_TF_STATUS_H
#include "tensorflow/c/c_api.h"
#endif
