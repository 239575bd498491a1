// The ops of the default runtime, as OpDef messages. Threads: any.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core.h"
#include "framework/proto/op_def.pb.h"

namespace thalweg::tf {

// NULL if there is no such op. Lives as long as the process.
const proto::OpDef* FindOp(std::string_view name);
// The same, with a failure that says what is missing.
const proto::OpDef& NeedOp(std::string_view name);
const proto::OpDef::AttrDef* FindAttr(const proto::OpDef& op, std::string_view name);
proto::OpList AllOps();
// Forgets the list, after a plugin was loaded; messages that were handed out stay valid.
void OpsChanged();

}  // namespace thalweg::tf
