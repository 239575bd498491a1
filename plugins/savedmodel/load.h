// Loads what recognise.h tells apart. Threads: one thread at a time.
#pragma once
#include "sink.h"

namespace thalweg::savedmodel {

// file: saved_model.pb of the model's folder.
void LoadSavedModel(const FileBytes& file, Sink* sink);
// file: a serialised GraphDef whose variables were made constants.
void LoadFrozenGraph(const FileBytes& file, Sink* sink);

}  // namespace thalweg::savedmodel
