// Tensors as lists of JSON. Errors are HttpError 400, and those of Charge::Add; `where` names model and input for them. charge: pays for
// the memory of the tensor.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "charged_text.h"
#include "part.h"
#include "thalweg/model.h"

namespace thalweg::cli::serve {

// Reads the `data` of the Open Inference Protocol: the values in row-major order, in one list or in nested ones. Strings are JSON
// strings.
tw::Tensor ReadData(const nlohmann::json& data, uint32_t dtype, const std::vector<int64_t>& dims, const std::string& where, Charge* charge);

// Reads a value of TensorFlow Serving's protocol, whose nesting is its shape. Strings are JSON strings or {"b64": BASE64}. expected:
// the shape of the input, which decides the sizes below an empty list.
tw::Tensor ReadNested(const nlohmann::json& value, uint32_t dtype, const tw_shape& expected, const std::string& where, Charge* charge);

// Append the values of a part: in one list; in nested lists; those of one row, nested. Floating-point numbers read back as the same
// values. NaN, Infinity and -Infinity are written by these names, which are no JSON but understood by many parsers, Python's and
// TensorFlow Serving's clients among them.
void WriteFlat(const Part& part, const std::string& where, ChargedText* out);
// base64: strings become {"b64": BASE64}; otherwise only those that are no UTF-8 do. A part without values may have no more than 65536
// lists.
void WriteNested(const Part& part, bool base64, const std::string& where, ChargedText* out);
void WriteRow(const Part& part, int64_t row, bool base64, const std::string& where, ChargedText* out);

// Appends a string of JSON. Bytes that are no UTF-8 stay as they are.
void AppendJsonString(std::string_view text, ChargedText* out);

}  // namespace thalweg::cli::serve
