// Tells ONNX files from other files by their first bytes.
#pragma once
#include <cstdint>
#include <string_view>

namespace thalweg::onnx {

// How sure the first bytes of a file are those of a ModelProto: 0 to 100. whole: they are all of the file.
uint32_t Recognise(std::string_view head, bool whole);

}  // namespace thalweg::onnx
