/* TF_DataType, for programs that include this part of the API alone. All declarations are in c_api.h. */
#ifndef THALWEG_TENSORFLOW_TF_DATATYPE_H
#define THALWEG_TENSORFLOW_TF_DATATYPE_H
#include "tensorflow/c/c_api.h"
#endif
