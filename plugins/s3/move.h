// Renaming, which S3 does not have: a copy within the store, then the removal of the old name.
// Threads: any.
#ifndef THALWEG_PLUGINS_S3_MOVE_H_
#define THALWEG_PLUGINS_S3_MOVE_H_

#include "address.h"
#include "store.h"

namespace thalweg::s3 {

// Replaces `to` by the object `from`; readers of `to` see the old object or the new one. Between the
// two steps, and for good if the second one fails, which is logged and no error, the object has both
// names. Throws NOT_FOUND, and UNAVAILABLE if the store may have copied the object or may still do
// so; after all other errors `to` is as it was.
void Move(Store* store, const Address& from, const Address& to);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_MOVE_H_
