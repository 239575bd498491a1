// Sharded tables of a saver: their names in files, and restores from another number of shards.
#pragma once
#include "ops/library/saver_parts.h"

namespace thalweg::library {

// Finds the shards of the options' tables among the handles and names them. Fails the scope if one
// is missing, or is in two tables.
void NameTables(tw_scope* scope, const tw_saver_options* options, tw_saver* saver);
// *other: whether some table was saved in another number of shards than it has. Reads no file if
// there are no tables.
tw_status* FindOtherTables(const tw_saver& saver, const char* prefix, bool* other);
// Restores everything through this process, with the rows of tables moved to their current shards.
tw_status* RestoreTables(tw_saver* saver, tw_session* session, const char* prefix);

}  // namespace thalweg::library
