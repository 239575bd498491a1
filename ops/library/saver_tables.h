// Tables in shards among what a saver saves: their names in files, and restoring them from another number of shards.
#pragma once
#include "ops/library/saver_parts.h"

namespace thalweg::library {

// Finds the shards of the options' tables among the handles and names them. Fails the scope where one is missing, or is in two tables.
void NameTables(tw_scope* scope, const tw_saver_options* options, tw_saver* saver);
// Whether some table was saved in another number of shards than it has. Looks into no file where there are no tables.
tw_status* FindOtherTables(const tw_saver& saver, const char* prefix, bool* other);
// Restores everything by way of this process, the rows of tables as they belong now.
tw_status* RestoreTables(tw_saver* saver, tw_session* session, const char* prefix);

}  // namespace thalweg::library
