// mkstemp, write, fsync-free rename: the reader of the path sees the old file or the whole new one.
#include "report/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace stepcast::report {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int reason) {
  throw Error(ErrorKind::kEnvironment, "cannot write " + path + ": " + what + ": " + std::strerror(reason));
}

// A temporary file that is removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path), name_(path + ".XXXXXX") {
    descriptor_ = ::mkstemp(name_.data());
    if (descriptor_ < 0) fail(path_, "no temporary file beside it", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(name_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, "write", errno);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void rename() {
    // mkstemp makes the file private; an output file is as readable as the user's mask says.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, 0666 & ~mask) != 0) fail(path_, "permissions", errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail(path_, "close", errno);
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail(path_, "rename", errno);
    renamed_ = true;
  }

 private:
  std::string path_;
  std::string name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

}  // namespace

namespace {

// Where `path` leads: itself, or the file that a symlink names.
std::string target_of(const std::string& path) {
  std::error_code code;
  std::string target = path;
  if (std::filesystem::is_symlink(path, code)) target = std::filesystem::weakly_canonical(path, code).string();
  const std::filesystem::file_status status = std::filesystem::status(target, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorKind::kEnvironment, "cannot write " + path + ": it is there and no regular file");
  }
  return target;
}

}  // namespace

void require_writable(const std::string& path) { const TemporaryFile probe(target_of(path)); }

void write_file_atomically(const std::string& path, std::string_view bytes) {
  TemporaryFile file(target_of(path));
  file.write(bytes);
  file.rename();
}

}  // namespace stepcast::report
