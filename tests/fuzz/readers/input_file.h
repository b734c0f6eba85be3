// The bytes of one fuzzing case as a file that a reader can open, rewritten case by case.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace stepcast::fuzz {

class InputFile {
 public:
  InputFile() {
    folder_ = std::filesystem::temp_directory_path() / ("stepcast-fuzz-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Writes the file and gives its path.
  std::string write(const std::string& name, const std::uint8_t* data, std::size_t size) const {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    return path.string();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace stepcast::fuzz
