#include "cli/backends.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/error.h"

namespace stepcast::cli {

void become_rank_program(const Launch& launch) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string program = (self.parent_path() / "stepcast-rank").string();
  if (!unknown) ::execv(program.c_str(), launch.argv);
  throw Error(ErrorKind::kEnvironment, "--backend cpu needs the program " + program + ", which is not there", {},
              {"install oneDNN (Debian: libdnnl-dev) and build again", "--backend reference: slow, readable kernels"});
}

}  // namespace stepcast::cli
