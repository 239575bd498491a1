// Numbers of the fields of GraphDef and NodeDef, which importer and exporter read and write one by one: what they do not know has to be
// kept byte for byte, and a million nodes must not all become messages first.
#pragma once
#include <cstdint>

namespace thalweg::graph_def {

enum GraphField : uint32_t { kNode = 1, kLibrary = 2, kVersions = 4 };
enum NodeField : uint32_t { kName = 1, kOp = 2, kInput = 3, kDevice = 4, kAttr = 5 };
enum MapField : uint32_t { kKey = 1, kValue = 2 };
enum VersionField : uint32_t { kProducer = 1, kMinConsumer = 2, kBadConsumers = 3 };

}  // namespace thalweg::graph_def
