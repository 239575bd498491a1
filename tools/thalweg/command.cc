#include "command.h"

#include <algorithm>
#include <charconv>

#include "framework/base/meant.h"

namespace thalweg::cli {

const std::vector<std::string>& Args::all(const std::string& option) const {
  static const std::vector<std::string> none;
  const auto it = values_.find(option);
  return it == values_.end() ? none : it->second;
}

std::string Args::get(const std::string& option, const std::string& other) const { return has(option) ? all(option).back() : other; }

Args Args::with(const std::string& option, const std::string& value) const {
  Args more = *this;
  more.values_[option].push_back(value);
  return more;
}

namespace {
template <class T>
T ToNumber(const Args& args, const std::string& option, T other, T least, const char* what) {
  if (!args.has(option)) return other;
  const std::string text = args.get(option);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
  throw UsageError{option + " takes " + what + ", not '" + text + "'"};
}
}  // namespace

int64_t Args::integer(const std::string& option, int64_t other, int64_t least) const {
  return ToNumber<int64_t>(*this, option, other, least, ("a whole number of at least " + std::to_string(least)).c_str());
}

double Args::number(const std::string& option, double other, double least) const {
  const std::string what = least == 0 ? "a number of at least 0" : "a positive number";
  return ToNumber<double>(*this, option, other, least, what.c_str());
}

Args Command::Parse(const std::vector<std::string>& words) const {
  Args args;
  args.words_ = words;
  bool only_positional = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_positional || word.size() < 2 || word[0] != '-') {
      args.positional_.push_back(word);
      continue;
    }
    if (word == "--") {
      only_positional = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const auto option = std::find_if(options.begin(), options.end(), [&](const Option& o) { return key == o.name; });
    if (option == options.end()) {
      Meant meant(key);
      for (const Option& o : options) meant.Consider(o.name);
      throw UsageError{"unknown option '" + key + "'" + meant.text()};
    }
    if (!option->value) {
      if (equals != word.npos) throw UsageError{"option '" + key + "' takes no value"};
      args.values_[key].emplace_back();
    } else if (equals != word.npos) {
      args.values_[key].push_back(word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      args.values_[key].push_back(words[++i]);
    } else {
      throw UsageError{"option '" + key + "' needs a value: " + option->value};
    }
  }
  if (args.positional_.size() < min_positional) throw UsageError{std::string("missing argument: ") + positional};
  if (args.positional_.size() > max_positional) throw UsageError{"unexpected argument '" + args.positional_[max_positional] + "'"};
  return args;
}

std::string Command::Help() const {
  std::string text = std::string("usage: thalweg ") + name + (*positional ? " " : "") + positional + " [options]\n" + summary + "\n";
  size_t width = 0;
  const auto title = [](const Option& o) { return std::string(o.name) + (o.value ? std::string(" ") + o.value : ""); };
  for (const Option& o : options) width = std::max(width, title(o).size());
  for (const Option& o : options) {
    text += "  " + title(o) + std::string(width + 2 - title(o).size(), ' ');
    // Indents the further lines of a help text to the column of its first line.
    for (const char* c = o.help; *c; ++c) text += *c == '\n' ? "\n" + std::string(width + 4, ' ') : std::string(1, *c);
    text += '\n';
  }
  return text + details + "Exit status: 0 good, 1 failed, 2 wrong arguments.\n";
}

}  // namespace thalweg::cli
