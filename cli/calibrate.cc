// stepcast calibrate: constants of the cost model from measured kernels.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/calibration_writer.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/merge.h"
#include "calibrate/table.h"
#include "cli/calibrate_output.h"
#include "cli/commands.h"
#include "cli/scenario_options.h"
#include "config/text.h"
#include "plan/cluster_reader.h"
#include "report/calibrations_report.h"
#include "report/file.h"
#include "sim/cost/calibration_reader.h"

namespace stepcast::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> from;
  std::string backend;
  std::string base;
  std::string gpu;
  std::string cluster;
  std::string attention;
  std::string out;
  bool json = false;
};

constexpr const char* kCalibrateExamples = R"(Examples
  stepcast calibrate --from scenarios/measured/gemm.csv --gpu H100-SXM --cluster hgx-h100 --base h100-default
  stepcast calibrate --from scenarios/measured/gemm.csv scenarios/measured/attention.csv --gpu H100-SXM \
    --cluster hgx-h100 --base h100-default --attention FA3 --out my-h100.yaml

--gpu is the device's name in the tables; vendor rates are those of the cluster's device. The result is the base
calibration with the fitted constants in place of its own; without --out they are only shown. Attention is fitted for
every implementation of the table; --attention says whose constants are taken.)";

using calibrate::SourcedFit;

void require_options(const CalibrateOptions& options) {
  if (!options.backend.empty()) {
    throw Error(ErrorKind::kUnsupported, "calibrate --backend is known, not supported yet", {},
                {"calibrate --from fits constants from tables of measured kernels"});
  }
  std::vector<std::string> missing;
  if (options.from.empty()) missing.emplace_back("--from");
  if (options.gpu.empty()) missing.emplace_back("--gpu");
  if (options.cluster.empty()) missing.emplace_back("--cluster");
  if (options.base.empty()) missing.emplace_back("--base");
  if (!missing.empty()) throw Error(ErrorKind::kUsage, "calibrate needs " + config::join(missing));
  if (!options.out.empty()) report::require_writable(options.out);
}

template <class Row>
void note_skipped(const calibrate::KernelRows<Row>& rows, CalibrateAnswer& answer) {
  for (const auto& [reason, count] : rows.skipped) {
    answer.not_taken.push_back(rows.file + ": " + std::to_string(count) + (count == 1 ? " row" : " rows") +
                               " not taken: " + reason);
  }
}

std::vector<SourcedFit> fits_of(const std::string& file, const CalibrateOptions& options, const sim::Calibration& base,
                                const topology::DeviceSpec& device, CalibrateAnswer& answer) {
  const calibrate::Table table = calibrate::parse_table(config::read_file(file), file);
  std::vector<SourcedFit> fits;
  if (calibrate::kind_of(table) == calibrate::KernelTable::kMatmul) {
    const auto rows = calibrate::read_matmul_rows(table, options.gpu);
    note_skipped(rows, answer);
    fits.push_back({calibrate::fit_matmul(rows, base, device), file, rows.sources});
    return fits;
  }
  const auto rows = calibrate::read_attention_rows(table, options.gpu);
  note_skipped(rows, answer);
  for (calibrate::KernelFit& fit : calibrate::fit_attention(rows, base, device)) {
    fits.push_back({std::move(fit), file, rows.sources});
  }
  return fits;
}

// Those whose constants the calibration takes.
std::vector<SourcedFit> taken(const std::vector<SourcedFit>& fits, const std::string& attention) {
  std::vector<SourcedFit> chosen;
  std::vector<std::string> kernels;
  bool found = attention.empty();
  for (const SourcedFit& f : fits) {
    const bool matmul = f.fit.kernel == "matmul";
    const bool asked = f.fit.kernel == attention + " fwd" || f.fit.kernel == attention + " bwd";
    if (!matmul) kernels.push_back(f.fit.kernel);
    found = found || asked;
    if (matmul || asked) chosen.push_back(f);
  }
  if (found) return chosen;
  throw Error(ErrorKind::kUsage, "--attention " + config::printable(attention) + ": no such kernel was fitted", {},
              {"fitted: " + (kernels.empty() ? "none" : config::join(kernels))});
}

int calibrate_from(const CalibrateOptions& options) {
  require_options(options);
  const config::SearchPath search = search_path();
  const sim::Calibration base = report::read_calibration_entry(options.base, search).calibration;
  const topology::Cluster cluster = plan::load_cluster(options.cluster, search, 1);
  CalibrateAnswer answer = {options.gpu, cluster.node.device.name, base.name, options.out, {}, {}, {}};
  std::vector<SourcedFit> fits;
  for (const std::string& file : options.from) {
    for (SourcedFit& fit : fits_of(file, options, base, cluster.node.device, answer)) fits.push_back(std::move(fit));
  }
  const std::vector<SourcedFit> merged_fits = taken(fits, options.attention);
  for (const SourcedFit& fit : fits) answer.fits.push_back(fit.fit);
  for (const SourcedFit& fit : merged_fits) answer.taken.push_back(fit.fit.kernel);
  if (!options.out.empty()) {
    const std::string name = std::filesystem::path(options.out).stem().string();
    const std::string text = calibrate::calibration_text(
        calibrate::merge(base, name, merged_fits),
        base.name +
            " with constants fitted by stepcast calibrate --from; each says from which rows, and how far off it is.");
    sim::read_calibration(text, options.out);  // what is written can be read
    report::write_file_atomically(options.out, text);
  }
  print(options.json ? calibrate_json(answer) : calibrate_screen(answer));
  return 0;
}

}  // namespace

Command calibrate_command(CLI::App& parent) {
  const auto options = std::make_shared<CalibrateOptions>();
  CLI::App* app = parent.add_subcommand("calibrate", "constants of the cost model, fitted to measured kernels");
  app->add_option("--from", options->from, "tables of measured matmuls and attention (CSV)")->type_name("FILE");
  app->add_option("--gpu", options->gpu, "rows of this device, as the tables name it")->type_name("NAME");
  app->add_option("--cluster", options->cluster, "cluster or node preset, or a file: vendor rates")->type_name("C");
  app->add_option("--base", options->base, "calibration that gives all other constants")->type_name("F");
  app->add_option("--attention", options->attention, "implementation whose attention is taken")->type_name("IMPL");
  app->add_option("--out", options->out, "calibration to write")->type_name("F.yaml");
  app->add_option("--backend", options->backend, "measure this machine (a later release)")->type_name("B");
  app->add_flag("--json", options->json, "one JSON object on standard output");
  app->footer(kCalibrateExamples);
  return {app, [options] { return calibrate_from(*options); }};
}

}  // namespace stepcast::cli
