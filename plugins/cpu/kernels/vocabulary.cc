#include "kernels/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "kernels/common/text.h"

namespace thalweg::cpu {
namespace {

std::string Contents(const tw_host* host, std::string_view path, tw::Charge* charge) {
  auto* api = static_cast<const tw_files_api*>(host->query(host, TW_S(TW_FILES_SET), 1));
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, "this runtime offers no files"};
  struct Open {
    const tw_files_api& api;
    tw_file* file = nullptr;
    ~Open() {
      if (file) api.close(file);
    }
  } open{*api};
  tw::check(api->open(host, path.data(), path.size(), &open.file));
  charge->add(api->bytes(open.file));
  std::string contents(size_t(api->bytes(open.file)), '\0');
  if (!contents.empty()) tw::check(api->read(open.file, 0, contents.data(), contents.size()));
  return contents;
}

float WeightOf(std::string_view line, size_t number, std::string_view path) {
  const std::string_view text = Stripped(line.substr(line.rfind(',') + 1));
  float weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (error == std::errc() && end == text.data() + text.size()) return weight;
  Invalid("line " + std::to_string(number) + " of vocab_file " + Quoted(path) + " is " + Quoted(line) +
          "; behind its last comma must stand the weight of a class");
}

}  // namespace

std::vector<float> VocabularyWeights(const tw_host* host, std::string_view path, tw::Charge* charge) {
  tw::Charge file{tw::Payer(host)};
  const std::string contents = Contents(host, path, &file);
  const auto lines = size_t(std::count(contents.begin(), contents.end(), '\n')) + 1;
  charge->add(lines * sizeof(float));
  std::vector<float> weights;
  weights.reserve(lines);
  for (std::string_view rest = contents; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    weights.push_back(WeightOf(line, weights.size() + 1, path));
  }
  return weights;
}

}  // namespace thalweg::cpu
