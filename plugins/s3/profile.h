// The files of credentials and of configuration that AWS's tools share: sections of `name = value`
// lines. Threads: any.
#ifndef THALWEG_PLUGINS_S3_PROFILE_H_
#define THALWEG_PLUGINS_S3_PROFILE_H_

#include <string>

#include "sign.h"

namespace thalweg::s3 {

// What a section says; empty texts for what it does not say.
struct Profile {
  bool found = false;  // the file has the section
  Key key;
  std::string region, endpoint;
};

// Returns the section `section` of the text of a file.
Profile ParseProfile(const std::string& text, const std::string& section);

// Reads a file. Returns an empty text if there is none. Throws INVALID_ARGUMENT if it cannot be read,
// is no file, has more than 1 MiB, belongs to a user who is neither this process's nor root, or may be
// changed by others. *readable_by_others: whether it should be hidden better.
std::string ReadProfileFile(const std::string& path, bool* readable_by_others);

// The section of the configuration: ~/.aws/config, or AWS_CONFIG_FILE. name: of the profile; empty:
// AWS_PROFILE, else "default".
Profile ReadConfig(const std::string& name);

// The name of the profile: `name`, else AWS_PROFILE, else "default".
std::string ProfileName(const std::string& name);
// The file of credentials: `path`, else AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials.
std::string CredentialsPath(const std::string& path);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_PROFILE_H_
