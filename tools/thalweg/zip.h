// Zip archives like NumPy's .npz files: members stored or deflated, no encryption, one file.
// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

// A member as the archive's directory lists it; ReadMember reads its bytes.
struct ZipMember {
  std::string name;
  uint64_t header = 0, packed = 0, bytes = 0;  // offset of its header; packed and unpacked size
  uint32_t method = 0, crc = 0;
};

// ListZip and ReadMember throw std::runtime_error with the fault of the archive; `archive` is the
// whole file.
std::vector<ZipMember> ListZip(const std::string& archive);
std::string ReadMember(const std::string& archive, const ZipMember& member);

// Makes an archive of stored members {name, bytes}; the same members give the same bytes.
std::string MakeZip(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace thalweg::cli
