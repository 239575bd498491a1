#include "framework/eager/options.h"

#include "framework/runtime/option_members.h"

namespace thalweg {

std::span<const OptionRow<EagerOptions>> EagerOptionRows() {
  using O = EagerOptions;
  static const OptionRow<O> rows[] = {
      {IntOption(
           "max_entries", "1024", 1, UINT32_MAX,
           "prepared ops that are kept, one for each op with its attributes, element types and device; of more, the one that was used "
           "longest ago goes"),
       SetMember<&O::max_entries>},
      {TextOption("container", "",
                  "name of the container of variables and other state; sessions and contexts with the same name share it; empty: the "
                  "context's own"),
       SetContainerMember<&O::container>},
      {TextOption("device", "",
                  "where ops run that name no device and whose inputs lie on none, such as CPU:0; empty: wherever there is a kernel"),
       SetDeviceMember<&O::device>},
      {ChoiceOption("fallback", "fail", kFallbackChoices, "an op whose device has no kernel for it: see the session option of that name"),
       SetMember<&O::fallback>},
      {IntOption("threads", "0", 0, UINT32_MAX,
                 "threads that compute for an op at once, the caller's included; 0: all that the runtime has"),
       SetMember<&O::threads>},
      {BytesOption("memory_limit", "0",
                   "bytes that prepared ops and the values that they made may hold together; an op that needs more fails; 0: no limit"),
       SetMember<&O::memory_limit>},
      {ChoiceOption("check_values", "off", kValueCheckChoices,
                    "an op fails whose result has NaN (nan), or NaN or infinities (finite); see the session option of that name"),
       SetMember<&O::check_values>},
  };
  return rows;
}

Status SetEagerOption(EagerOptions* options, std::string_view key, std::string_view value) {
  return SetOption<EagerOptions>("eager", EagerOptionRows(), options, key, value);
}

}  // namespace thalweg
