// One function per source file; each adds the file's kernels to the plugin.
#ifndef THALWEG_PLUGINS_SUMMARY_REGISTER_H_
#define THALWEG_PLUGINS_SUMMARY_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::summary {

void register_summaries(tw::Plugin& p);
void register_writer(tw::Plugin& p);

}  // namespace thalweg::summary

#endif  // THALWEG_PLUGINS_SUMMARY_REGISTER_H_
