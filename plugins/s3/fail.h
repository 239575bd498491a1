// Failures of this plugin are thrown as tw::Error, which the table of the role turns into a status.
// Threads: any.
#ifndef THALWEG_PLUGINS_S3_FAIL_H_
#define THALWEG_PLUGINS_S3_FAIL_H_

#include <cstdint>
#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::s3 {

[[noreturn]] inline void Fail(uint32_t code, std::string text) { throw tw::Error{code, std::move(text)}; }

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_FAIL_H_
