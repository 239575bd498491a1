// thalweg serve: hands over to the helper program thalweg-serve, which answers requests over HTTP
// with models from files. The command itself loads no library for HTTP.
#include "helper_program.h"
#include "serve/command_table.h"

namespace thalweg::cli {
namespace {

int Run(const Args& args) {
  ExecuteHelper("thalweg-serve", args.words(), "install the package thalweg-serve, or build the target thalweg_serve_program");
}

}  // namespace

const Command& ServeCommand() {
  static const Command command = serve::MakeServeCommand(Run);
  return command;
}

}  // namespace thalweg::cli
