// stepcast explain: what a word of the screens means.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <span>

#include "base/error.h"
#include "cli/commands.h"
#include "config/text.h"
#include "report/terms.h"

namespace stepcast::cli {
namespace {

struct ExplainOptions {
  std::vector<std::string> words;
  bool json = false;
};

int explain(const ExplainOptions& options) {
  if (options.words.empty()) {
    print(options.json ? report::terms_json(report::all_terms()) : report::terms_list());
    return 0;
  }
  const std::string name = config::join(options.words, " ");
  const report::Term* const term = report::find_term(name);
  if (term == nullptr) {
    std::vector<std::string> help;
    const std::vector<std::string> nearest = report::nearest_terms(name);
    if (!nearest.empty()) help.push_back("did you mean " + config::join(nearest) + "?");
    help.emplace_back("stepcast explain lists all terms");
    throw Error(ErrorKind::kUsage, "no term is called '" + config::printable(name) + "'", {}, help);
  }
  if (!report::is_called(*term, name)) {
    std::fprintf(stderr, "note: no term is called '%s'; this is '%s', where it ends\n", config::printable(name).c_str(),
                 std::string(term->name).c_str());
  }
  print(options.json ? report::terms_json({term, 1}) : report::term_screen(*term));
  return 0;
}

}  // namespace

Command explain_command(CLI::App& parent) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* app = parent.add_subcommand("explain", "what a word or warning of the screens means, with its formula");
  app->add_option("TERM", options->words, "a term; all their names when left out");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(R"(Examples
  stepcast explain bubble
  stepcast explain exposed tp
  stepcast explain W302)");
  return {app, [options] { return explain(*options); }};
}

}  // namespace stepcast::cli
