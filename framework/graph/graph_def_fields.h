// Field numbers of GraphDef and its parts, which importer and exporter read and write field by
// field: unknown fields must be kept byte for byte, and a million nodes must not all be parsed into
// messages first.
#pragma once
#include <cstdint>

namespace thalweg::graph_def {

enum GraphField : uint32_t { kNode = 1, kLibrary = 2, kVersions = 4 };
enum NodeField : uint32_t { kName = 1, kOp = 2, kInput = 3, kDevice = 4, kAttr = 5 };
enum MapField : uint32_t { kKey = 1, kValue = 2 };
enum FunctionField : uint32_t { kSignature = 1, kNodeDef = 3, kRet = 4, kControlRet = 6, kArgAttr = 7 };
enum SignatureField : uint32_t {
  kSignatureName = 1,
  kInputArg = 2,
  kOutputArg = 3,
  kSignatureAttr = 4,
  kIsStateful = 17,
  kControlOutput = 20
};
enum ArgField : uint32_t { kArgName = 1, kArgType = 3, kTypeAttr = 4, kNumberAttr = 5, kTypeListAttr = 6, kHandleData = 7 };
enum ArgAttrsField : uint32_t { kArgAttrMap = 1 };
enum HandleField : uint32_t { kHandleType = 1, kHandleShape = 2 };
enum AttrDefField : uint32_t { kAttrName = 1, kAttrDefault = 3 };
enum AttrValueField : uint32_t { kList = 1, kShape = 7, kPlaceholder = 9, kFunc = 10 };
enum ListField : uint32_t { kListFunc = 9 };
enum NameAttrListField : uint32_t { kFuncName = 1, kFuncAttr = 2 };
enum VersionField : uint32_t { kProducer = 1, kMinConsumer = 2, kBadConsumers = 3 };

}  // namespace thalweg::graph_def
