#include "command_table.h"

#include "tools/thalweg/handles.h"

namespace thalweg::cli::serve {
namespace {

const char kDetails[] =
    "The protocols: Open Inference Protocol (KServe v2) below /v2, TensorFlow Serving's REST API below\n"
    "/v1; /metrics for Prometheus. For example:\n"
    "  thalweg serve resnet50.onnx --port 8000\n"
    "  curl localhost:8000/       the models, their inputs, and a request to try with each\n"
    "  curl localhost:8000/v1/models/resnet50:predict -d '{\"instances\": [[1, 2, 3]]}'\n"
    "FOLDER/NAME/VERSION/ holds one model; VERSION is a whole number. The address is printed once the\n"
    "models are loaded; until then /v2/health/ready is 503. Errors are {\"error\": TEXT}. There is no TLS and\n"
    "no password: for other machines put a proxy before the server. Ends on SIGTERM and SIGINT: running\n"
    "requests are finished, a model that is being loaded is not waited for. The run of a client that goes\n"
    "away is cancelled. The work is done by the program lib/thalweg/thalweg-serve.\n";

}  // namespace

Command MakeServeCommand(int (*run)(const Args& args)) {
  return {
      "serve",
      "[FILE]",
      "Serves a model, or a folder of models, over HTTP.",
      kDetails,
      {{"--models", "FILE", "a folder with NAME/VERSION/<model>, the layout of TensorFlow Serving and Triton"},
       {"--versions", "latest|all", "which versions of the folder are served (latest)"},
       {"--poll", "SECONDS", "look for new versions this often (0: never)"},
       {"--label", "MODEL:LABEL=VERSION", "a name for a version; may be repeated"},
       {"--name", "NAME", "the model's name in addresses (its file's, without the extension)"},
       {"--host", "ADDRESS", "the address to listen at (127.0.0.1: only this machine)"},
       {"--port", "N", "the port (8000); 0: any free one. It is printed"},
       {"--allow-origin", "ORIGIN", "let web pages of this origin, such as https://example.org, use the server; *: all; may be repeated"},
       {"--max-batch", "N", "join waiting requests into runs of at most N rows (1: never)"},
       {"--batch-delay-us", "N", "how long a request waits for others (1000)"},
       {"--max-request-bytes", "BYTES", "the limit of a request's body, unpacked (32M)"},
       {"--request-memory", "BYTES",
        "what all requests in flight may hold together: bodies, values, answers (half of the machine's or container's memory); "
        "a request beyond it is answered with 429"},
       {"--max-requests", "N", "requests that run at once; a further one is answered with 429 (64)"},
       {"--max-connections", "N", "connections that are served at once; further ones wait (512)"},
       {"--timeout-ms", "N", "the time of a request, 0: no limit (300000)"},
       {"--io-timeout-ms", "N", "how far a client may fall behind 16 KiB a second (10000)"},
       {"--drain-ms", "N", "how long running requests may go on after SIGTERM (10000)"},
       {"--memory-limit", "BYTES", "the memory of each model's runs, such as 2G (three quarters of the machine's or container's)"},
       {"--log", nullptr, "write a line for each request to standard error, not only for failures of the server"},
       {"--device", "NAME", "run on this device where it can, such as CUDA:0"},
       {"--session-option", "KEY=VALUE", "an option of the models' sessions; may be repeated"},
       kImporterOption,
       kModelOption,
       kThreadsOption,
       kPluginOption,
       kRuntimeOption},
      0,
      1,
      run};
}

}  // namespace thalweg::cli::serve
