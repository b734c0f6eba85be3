// Output files appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::report {

// Writes `bytes` to a temporary file beside `path` and renames it to `path` (replacing a regular file that was there);
// on failure the temporary file is removed. A symlink is followed; anything else that is no regular file is refused.
// Throws Error (kEnvironment) naming the path and the system's reason.
void write_file_atomically(const std::string& path, std::string_view bytes);

// Throws what write_file_atomically would throw for lack of a folder or permission, before hours of work are done for
// it.
void require_writable(const std::string& path);

}  // namespace stepcast::report
