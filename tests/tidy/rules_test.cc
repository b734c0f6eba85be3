// Each house rule catches what it is there for: bad snippets are found, good ones are not.
#include "tests/tidy/rules.h"

#include <gtest/gtest.h>

#include <string>

namespace stepcast::tidy {
namespace {

// The findings on `code` in a file of that path, which opens properly.
std::string findings(const std::string& path, const std::string& code) {
  const std::string pragma = path.ends_with(".h") ? "#pragma once\n" : "";
  return to_text(check_source(read_source(path, "// What it models.\n" + pragma + code)));
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "  work();\n";
  return text;
}

TEST(FloorPlan, RefusesIncludesOfHigherFloors) {
  EXPECT_EQ(findings("sim/a.cc", "#include \"plan/scenario.h\"\n"),
            "sim/a.cc:2: sim/ must not see plan/; it may include base config program topology trace\n");
  for (const char* seen : {"models", "exec", "kernels", "report", "cli", "calibrate", "tests"}) {
    EXPECT_NE(findings("sim/a.cc", "#include \"" + std::string(seen) + "/x.h\"\n"), "") << seen;
  }
  for (const char* seen : {"models", "topology", "plan", "sim", "config"}) {
    EXPECT_NE(findings("exec/a.cc", "#include \"" + std::string(seen) + "/x.h\"\n"), "") << seen;
  }
  EXPECT_NE(findings("base/a.cc", "#include \"program/program.h\"\n"), "");
  EXPECT_NE(findings("program/a.cc", "#include \"kernels/kernel.h\"\n"), "");
  EXPECT_NE(findings("plan/a.cc", "#include \"sim/prediction.h\"\n"), "");
}

TEST(FloorPlan, AllowsIncludesOfLowerFloors) {
  EXPECT_EQ(findings("sim/engine/a.cc", "#include <vector>\n#include \"program/program.h\"\n#include \"sim/b.h\"\n"),
            "");
  EXPECT_EQ(findings("exec/a.cc", "#include <unistd.h>\n#include \"kernels/kernel.h\"\n"), "");
  EXPECT_EQ(findings("cli/a.cc", "#include \"report/x.h\"\n#include \"plan/x.h\"\n#include <CLI/CLI.hpp>\n"), "");
  EXPECT_EQ(findings("tests/exec/a_test.cc", "#include \"plan/lowering.h\"\n#include <gtest/gtest.h>\n"), "");
}

TEST(FloorPlan, RefusesIncludesRelativeToTheFile) {
  EXPECT_NE(findings("sim/a.cc", "#include \"b.h\"\n").find("path from the root"), std::string::npos);
  EXPECT_NE(findings("sim/a.cc", "#include \"../base/b.h\"\n").find("path from the root"), std::string::npos);
}

TEST(Fences, KeepLibrariesInTheirFolders) {
  EXPECT_EQ(findings("sim/a.cc", "#include <CLI/CLI.hpp>\n"), "sim/a.cc:2: <CLI/CLI.hpp> belongs in cli/\n");
  EXPECT_NE(findings("plan/a.cc", "#include <boost/graph/adjacency_list.hpp>\n"), "");
  EXPECT_EQ(findings("topology/a.cc", "#include <boost/graph/adjacency_list.hpp>\n"), "");
  EXPECT_NE(findings("topology/a.cc", "#include <boost/asio.hpp>\n"), "");  // only the graph
  EXPECT_NE(findings("report/a.cc", "#include <Eigen/Dense>\n"), "");
  EXPECT_EQ(findings("calibrate/a.cc", "#include <Eigen/Dense>\n"), "");
  EXPECT_NE(findings("plan/a.cc", "#include <yaml-cpp/yaml.h>\n"), "");
  EXPECT_NE(findings("exec/a.cc", "#include <oneapi/dnnl/dnnl.hpp>\n"), "");
  EXPECT_NE(findings("program/a.cc", "#include <cuda_runtime.h>\n"), "");
  EXPECT_NE(findings("kernels/a.cc", "#include <nccl.h>\n"), "");
  EXPECT_EQ(findings("kernels/cpu_fast/a.cc", "#include <oneapi/dnnl/dnnl.hpp>\n#include <omp.h>\n"), "");
  EXPECT_NE(findings("trace/a.cc", "#include <nlohmann/json.hpp>\n"), "");
  for (const char* folder : {"base", "program", "kernels", "exec", "trace"}) {
    EXPECT_NE(findings(std::string(folder) + "/a.cc", "#include <fmt/format.h>\n"), "") << folder;
  }
  EXPECT_NE(findings("cli/a.cc", "#include <curl/curl.h>\n").find("no fence knows"), std::string::npos);
}

TEST(Fences, KeepProtobufAtFileEdges) {
  EXPECT_NE(findings("plan/lowering.cc", "#include \"plan/scenario.pb.h\"\n"), "");
  EXPECT_NE(findings("exec/reader.cc", "#include <google/protobuf/message.h>\n"), "");
  EXPECT_EQ(findings("plan/scenario_reader.cc", "#include \"plan/scenario.pb.h\"\n"), "");
  EXPECT_EQ(findings("config/bind.cc", "#include <google/protobuf/message.h>\n"), "");
  EXPECT_EQ(findings("report/perfetto.cc", "#include \"report/perfetto.pb.h\"\n"), "");
}

TEST(Words, AreBannedWithTheReplacement) {
  EXPECT_NE(findings("plan/a.cc", "int x = rand();\n").find("RandomStream"), std::string::npos);
  EXPECT_NE(findings("plan/a.cc", "int x = std::rand();\n"), "");
  EXPECT_NE(findings("sim/a.cc", "auto t = std::chrono::system_clock::now();\n").find("SimTime"), std::string::npos);
  EXPECT_NE(findings("sim/a.cc", "std::unordered_map<int, int> m;\n").find("std::map"), std::string::npos);
  EXPECT_NE(findings("kernels/a.cc", "std::normal_distribution<double> d;\n").find("RandomStream"), std::string::npos);
  EXPECT_NE(findings("plan/a.cc", "using namespace std;\n"), "");
  EXPECT_NE(findings("plan/a.cc", "// TODO: later\n"), "");
  EXPECT_NE(findings("plan/a.cc", "int x;  /* FIXME */\n"), "");
  EXPECT_NE(findings("plan/a.cc", "assert(x > 0);\n").find("CHECK"), std::string::npos);
  EXPECT_NE(findings("plan/a.cc", "#define LIMIT 3\n").find("macro LIMIT"), std::string::npos);
}

TEST(Words, AreFreeInStringsAndInsideOtherWords) {
  EXPECT_EQ(findings("plan/a.cc", "const char* x = \"rand() TODO using namespace\";\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "const char* x = R\"(rand( \" TODO)\";\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "int operand(int a); static_assert(true);\n"), "");
  EXPECT_EQ(findings("exec/a.cc", "std::unordered_map<int, int> m; int key_distribution = 1;\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "// rand() differs between libraries\n"), "");
  EXPECT_EQ(findings("cli/main.cc", "std::exit(2);\n"), "");
}

TEST(Words, AreBannedInBuildFiles) {
  Findings found;
  check_build_file("CMakeLists.txt", "x\nadd_compile_options(-ffast-math)\n", found);
  EXPECT_NE(to_text(found).find("CMakeLists.txt:2: -ffast-math"), std::string::npos) << to_text(found);
}

TEST(Sizes, LimitColumnsInCharacters) {
  EXPECT_EQ(findings("plan/a.cc", "// " + std::string(117, 'x') + "\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "// " + std::string(118, 'x') + "\n"), "plan/a.cc:2: longer than 120 columns\n");
  std::string accents = "// ";
  for (int i = 0; i < 117; ++i) accents += "é";  // two bytes each
  EXPECT_EQ(findings("plan/a.cc", accents + "\n"), "");
}

TEST(Sizes, LimitFiles) {
  EXPECT_EQ(findings("plan/a.cc", std::string(499, '\n')), "");
  EXPECT_NE(findings("plan/a.cc", std::string(500, '\n')), "");
  EXPECT_EQ(findings("tests/plan/a.cc", std::string(799, '\n')), "");
  EXPECT_NE(findings("tests/plan/a.cc", std::string(800, '\n')), "");
}

TEST(Sizes, LimitFunctions) {
  // The head, 68 lines and the closing brace are 70 lines.
  EXPECT_EQ(findings("plan/a.cc", "void f() {\n" + lines(68) + "}\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "void f() {\n" + lines(69) + "}\n"),
            "plan/a.cc:2: a function of 71 lines; at most 70, aim for 30\n");
  // A head of two lines counts; so do methods, templates, tests and constructors with initialisers.
  EXPECT_NE(findings("plan/a.cc", "void f(int a,\n       int b) {\n" + lines(68) + "}\n"), "");
  EXPECT_NE(findings("plan/a.h", "class A {\n public:\n  void f() {\n" + lines(69) + "}\n};\n"), "");
  EXPECT_NE(findings("plan/a.cc", "template <class T>\nvoid f() {\n" + lines(69) + "}\n"), "");
  EXPECT_NE(findings("plan/a.cc", "A::A(int x) : a_(x), b_{x}, c_{x} {\n" + lines(69) + "}\n"), "");
  EXPECT_NE(findings("plan/a.cc", "namespace a {\nint x = 0;\nbool operator==(A a, A b) {\n" + lines(69) + "}\n}\n"),
            "");
}

TEST(Sizes, DoNotTakeTypesAndTablesForFunctions) {
  EXPECT_EQ(findings("plan/a.cc", "namespace a {\n" + lines(100) + "}\n"), "");
  EXPECT_EQ(findings("plan/a.h", "struct A {\n" + lines(100) + "};\n"), "");
  EXPECT_EQ(findings("plan/a.cc", "constexpr auto kTable = std::to_array<int>({\n" + lines(100) + "});\n"), "");
  // Braces in strings, characters and macros do not count.
  EXPECT_EQ(findings("plan/a.cc", "void f() { g('{', \"{\"); }\n" + lines(100)), "");
}

TEST(Opening, IsAComment) {
  const auto check = [](const std::string& path, const std::string& text) {
    return to_text(check_source(read_source(path, text)));
  };
  EXPECT_NE(check("plan/a.cc", "#include <vector>\n"), "");
  EXPECT_NE(check("plan/a.h", "#pragma once\n"), "");
  EXPECT_NE(check("plan/a.h", "// What.\nint x;\n").find("#pragma once"), std::string::npos);
  // The header's opening speaks for its .cc, but not for another.
  EXPECT_EQ(check("plan/a.cc", "#include \"plan/a.h\"\n"), "");
  EXPECT_NE(check("plan/a.cc", "#include \"plan/b.h\"\n"), "");
}

TEST(Readme, IsThereAndShort) {
  Findings found;
  check_readme("sim", true, std::string(60, '\n'), found);
  EXPECT_TRUE(found.empty());
  check_readme("sim", true, std::string(61, '\n'), found);
  check_readme("exec", false, "", found);
  EXPECT_EQ(found.size(), 2U);
}

}  // namespace
}  // namespace stepcast::tidy
