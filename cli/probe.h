// `PROGRAM --probe`: what a rank program says of the libraries it links, for doctor. That it answers at all shows that
// they are here.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace stepcast::cli {

inline bool is_probe(int argc, char** argv) { return argc == 2 && std::string_view(argv[1]) == "--probe"; }

// Exit code.
inline int answer_probe(const std::string& text) { return std::puts(text.c_str()) < 0 ? 1 : 0; }

}  // namespace stepcast::cli
