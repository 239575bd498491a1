// Zip archives as NumPy's .npz files are: members stored or deflated, no encryption, one file.
// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

// A member as the archive's directory lists it; its bytes are read by ReadMember.
struct ZipMember {
  std::string name;
  uint64_t header = 0, packed = 0, bytes = 0;  // offset of its header; sizes in the archive and out of it
  uint32_t method = 0, crc = 0;
};

// Both throw std::runtime_error saying what is wrong with the archive; `archive` is the whole file.
std::vector<ZipMember> ListZip(const std::string& archive);
std::string ReadMember(const std::string& archive, const ZipMember& member);

// An archive of members {name, bytes}, stored; the same bytes for the same members.
std::string MakeZip(const std::vector<std::pair<std::string, std::string>>& members);

}  // namespace thalweg::cli
