/* TF_CAPI_EXPORT, for programs that include this part of the API alone. All declarations are in c_api.h. */
#ifndef THALWEG_TENSORFLOW_C_API_MACROS_H
#define THALWEG_TENSORFLOW_C_API_MACROS_H
#include "tensorflow/c/c_api.h"
#endif
