// The house rules as checks over source text: the floor plan, library fences, sizes and banned words. DESIGN in short:
// sim and exec know no model and no strategy; a library stays in the folder that needs it.
//
// Every check is a pure function, so that the test can show each of them failing on a bad snippet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source.h"

namespace stepcast::tidy {

struct Finding {
  std::string path;
  int line = 0;  // 0: the whole file
  std::string message;
};

using Findings = std::vector<Finding>;

// Which folder includes which, and which third-party header lives where.
void check_includes(const Source& source, Findings& findings);
// Columns, lines per file, lines per function.
void check_sizes(const Source& source, Findings& findings);
// Banned words in code and comments, with the replacement in the message.
void check_words(const Source& source, Findings& findings);
// Opens with a comment; headers say #pragma once.
void check_opening(const Source& source, Findings& findings);
// All of the above.
Findings check_source(const Source& source);

// -ffast-math and its relatives in a build file.
void check_build_file(std::string_view path, std::string_view text, Findings& findings);
// A folder's README: there, and at most 60 lines.
void check_readme(std::string_view folder, bool exists, std::string_view text, Findings& findings);

// "path:line: message", one a line.
std::string to_text(const Findings& findings);

}  // namespace stepcast::tidy
