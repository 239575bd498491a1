// thalweg completion: generates shell completion scripts from the tables of options.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "command.h"
#include "thalweg/thalweg.h"

namespace thalweg::cli {
namespace {

// The completions possible at one position: words, files, or neither.
struct Offer {
  std::vector<std::string> words;
  bool files = false;
};

bool IsFile(const std::string& name) {
  static const std::vector<std::string> files = {"FILE", "PREFIX", "GRAPH", "LOGDIR", "CSV"};
  return std::find(files.begin(), files.end(), name) != files.end();
}

// Parses a specification such as "verify|list PREFIX" or "FILE"; lower-case words stand for
// themselves.
Offer OfferFor(const std::string& spec) {
  Offer offer;
  for (size_t at = 0; at < spec.size();) {
    const size_t end = std::min(spec.find_first_of(" |[]", at), spec.size());
    const std::string word = spec.substr(at, end - at);
    if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') offer.words.push_back(word);
    offer.files |= IsFile(word);
    at = end + 1;
  }
  return offer;
}

// Returns the table of runtime or session options that `option` takes as KEY=VALUE; NULL for any
// other option.
using Table = const tw_option* (*)(uint32_t i);
Table TableOf(const Option& option) {
  if (std::strcmp(option.name, "--option") == 0) return tw_runtime_option;
  return std::strcmp(option.name, "--session-option") == 0 ? tw_session_option : nullptr;
}

// Returns the keys, such as "threads="; for "memory_limit.<KIND>" only the prefix before the
// placeholder.
std::vector<std::string> Keys(Table table) {
  std::vector<std::string> keys;
  for (uint32_t i = 0; const tw_option* o = table(i); ++i) {
    const std::string name = o->name;
    const size_t open = name.find('<');
    keys.push_back(open == name.npos ? name + "=" : name.substr(0, open));
  }
  return keys;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> OptionNames(const Command& command) {
  std::vector<std::string> names = {"--help"};
  for (const Option& o : command.options) names.push_back(o.name);
  return names;
}

// Returns the first line of a help text.
std::string Summary(const char* help) { return std::string(help, std::strcspn(help, "\n")); }

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) text.replace(at, what.size(), with);
  return text;
}

// ---- bash ----

// Returns the case that offers the words `option` takes; its pattern is "COMMAND OPTION KEY" (see
// the script).
std::string BashOption(const Command& command, const Option& o) {
  if (!o.value) return "";
  const std::string place = "    '" + std::string(command.name) + " " + o.name + " '";
  std::string cases;
  if (const Table table = TableOf(o)) {
    for (uint32_t i = 0; const tw_option* option = table(i); ++i) {
      std::vector<std::string> values(option->choices, option->choices + option->n_choices);
      if (option->kind == TW_OPTION_BOOL) values = {"true", "false"};
      if (!values.empty()) cases += place + option->name + ") words='" + Joined(values) + "' ;;\n";
    }
    return cases + place + ") words='" + Joined(Keys(table)) + "' ;;\n" + place + "*) ;;\n";
  }
  const Offer offer = OfferFor(o.value);
  // A file name may follow NAME=.
  if (std::strchr(o.value, '=')) return place + ") ;;\n" + place + "?*) files=1 ;;\n";
  return place + "*) " + (offer.files ? "files=1 ;;\n" : offer.words.empty() ? ";;\n" : "words='" + Joined(offer.words) + "' ;;\n");
}

std::string Bash() {
  std::vector<std::string> names = {"--help", "--version"};
  std::string options, places;
  for (const Command* c : Commands()) {
    names.push_back(c->name);
    for (const Option& o : c->options) options += BashOption(*c, o);
    const Offer offer = OfferFor(c->positional);
    places += "    " + std::string(c->name) + ") all='" + Joined(OptionNames(*c)) + "' words='" + Joined(offer.words) + "'" +
              (offer.files ? " files=1" : "") + " ;;\n";
  }
  return R"(# Completion of the thalweg command for bash; made by `thalweg completion bash`.
_thalweg() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) option key='' all='' words='' files=''
  # bash parts words at =, so that --name=value and key=value come as three.
  if [ "$cur" = = ]; then cur='' at=$COMP_CWORD; fi
  option=${COMP_WORDS[at]}
  if [ "$option" = = ] && ((at > 1)); then
    option=${COMP_WORDS[at - 1]}
    if [ "${option:0:1}" != - ]; then
      key=$option
      ((at -= 2))
      if [ "${COMP_WORDS[at]}" = = ] && ((at > 1)); then ((at -= 1)); fi
      option=${COMP_WORDS[at]}
    fi
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W ')" +
         Joined(names) + R"(' -- "$cur")
    return
  fi
  case "${COMP_WORDS[1]} $option $key" in
)" + options +
         R"(    *) case ${COMP_WORDS[1]} in
)" + Replaced(places, "    ", "      ") +
         R"(      esac
      if [ "${cur:0:1}" = - ]; then words=$all files=''; fi ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur"; [ -z "$files" ] || compgen -f -- "$cur")
  if [ -n "$files" ]; then compopt -o filenames 2>/dev/null; fi
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=.] && -z $files ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _thalweg thalweg
)";
}

// ---- zsh ----

// Quotes `text` in single quotes and escapes the characters that _arguments interprets.
std::string ZshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::strchr("[]:\\", c)) out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

std::string ZshAction(const Offer& offer) {
  if (offer.files && offer.words.empty()) return "_files";
  if (offer.files) return "{compadd -- " + Joined(offer.words) + "; _files}";
  return offer.words.empty() ? " " : "(" + Joined(offer.words) + ")";
}

std::string ZshOption(const Option& o) {
  const std::string help = "[" + ZshText(Summary(o.help)) + "]";
  if (!o.value) return "'" + std::string(o.name) + help + "'";
  std::string action = std::strchr(o.value, '=') ? "_files" : ZshAction(OfferFor(o.value));
  if (const Table table = TableOf(o)) action = "{compadd -S \"\" -- " + Joined(Keys(table)) + "}";
  const bool longer = std::strncmp(o.name, "--", 2) == 0;
  return "'*" + std::string(o.name) + (longer ? "=" : "") + help + ":" + ZshText(o.value) + ":" + action + "'";
}

std::string Zsh() {
  std::string names, cases;
  for (const Command* c : Commands()) {
    names += "    '" + std::string(c->name) + ":" + ZshText(c->summary) + "'\n";
    cases += "    " + std::string(c->name) + ")\n      _arguments -s '--help[say more]'";
    for (const Option& o : c->options) cases += " \\\n        " + ZshOption(o);
    if (c->max_positional > 0) cases += " \\\n        '*:" + ZshText(c->positional) + ":" + ZshAction(OfferFor(c->positional)) + "'";
    cases += " ;;\n";
  }
  return "#compdef thalweg\n# Completion of the thalweg command for zsh; made by `thalweg completion zsh`.\n_thalweg() {\n  local -a "
         "commands\n"
         "  commands=(\n" +
         names +
         "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
         "  shift words\n  ((CURRENT -= 1))\n  case $words[1] in\n" +
         cases + "  esac\n}\nif [ \"$funcstack[1]\" = _thalweg ]; then _thalweg \"$@\"; else compdef _thalweg thalweg; fi\n";
}

// ---- fish ----

std::string FishText(const std::string& text) { return "'" + Replaced(Replaced(text, "\\", "\\\\"), "'", "\\'") + "'"; }

std::string FishOption(const std::string& when, const Option& o) {
  const bool longer = std::strncmp(o.name, "--", 2) == 0;
  std::string line = when + (longer ? " -l " + std::string(o.name + 2) : " -s " + std::string(o.name + 1));
  if (o.value) {
    const Table table = TableOf(o);
    const Offer offer = OfferFor(o.value);
    const std::vector<std::string> words = table ? Keys(table) : offer.words;
    line += offer.files || (!table && std::strchr(o.value, '=')) ? " -r -F" : " -x";
    if (!words.empty()) line += " -a " + FishText(Joined(words));
  }
  return line + " -d " + FishText(Summary(o.help)) + "\n";
}

std::string Fish() {
  std::string text = "# Completion of the thalweg command for fish; made by `thalweg completion fish`.\ncomplete -c thalweg -f\n";
  text += "complete -c thalweg -n __fish_use_subcommand -l version -d 'say which version this is'\n";
  text += "complete -c thalweg -l help -d 'say more'\n";
  for (const Command* c : Commands()) {
    text += "complete -c thalweg -n __fish_use_subcommand -a " + std::string(c->name) + " -d " + FishText(c->summary) + "\n";
    const std::string when = "complete -c thalweg -n '__fish_seen_subcommand_from " + std::string(c->name) + "'";
    const Offer offer = OfferFor(c->positional);
    if (!offer.words.empty()) text += when + " -a " + FishText(Joined(offer.words)) + "\n";
    if (offer.files) text += when + " -F\n";
    for (const Option& o : c->options) text += FishOption(when, o);
  }
  return text;
}

int Run(const Args& args) {
  const std::string shell = args.positional()[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish") throw UsageError{"'" + shell + "' is neither bash, zsh nor fish"};
  std::fputs((shell == "bash" ? Bash() : shell == "zsh" ? Zsh() : Fish()).c_str(), stdout);
  return kGood;
}

}  // namespace

const Command& CompletionCommand() {
  static const Command command = {"completion",
                                  "bash|zsh|fish",
                                  "Prints a script that lets a shell complete this command: sub-commands, options, files.",
                                  "bash: eval \"$(thalweg completion bash)\" in ~/.bashrc\n"
                                  "zsh:  thalweg completion zsh > a folder of $fpath, as _thalweg; or, after compinit: source it\n"
                                  "fish: thalweg completion fish > ~/.config/fish/completions/thalweg.fish\n",
                                  {},
                                  1,
                                  1,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
