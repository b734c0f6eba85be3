// Totals of a job, worked out by hand.
#include "report/job_report.h"

#include <gtest/gtest.h>

namespace stepcast::report {
namespace {

// 512 sequences of 8,192 tokens on 2,048 devices of 700 W.
plan::Scenario large_job() {
  plan::Scenario s;
  s.gpus = 2048;
  s.training.sequence_length = 8192;
  s.training.global_batch_size = 512;
  s.cluster.node.device.power_limit = 700;
  s.job = plan::Job{.tokens = 1e12, .price = 2.5, .pue = 1.12};
  return s;
}

TEST(JobReport, MultipliesStepsByTheirTimeDevicesAndPrice) {
  const JobReport job = job_report(large_job(), 11.88);
  // 1e12 / 4,194,304 = 238,418.6 steps; 238,419 x 11.88 s = 2,832,417.7 s.
  EXPECT_EQ(job.steps, 238419);
  EXPECT_NEAR(job.days, 2832417.72 / 86400, 1e-6);  // 32.78
  EXPECT_NEAR(job.gpu_hours, 2832417.72 / 3600 * 2048, 1e-3);
  EXPECT_NEAR(job.cost_dollars.value(), 2832417.72 / 3600 * 2048 * 2.5, 1e-2);
  // 1,611,331 h x 700 W = 1,127.9 MWh, x 1.12.
  EXPECT_NEAR(job.energy_mwh.value(), 2832417.72 / 3600 * 2048 * 700e-6 * 1.12, 1e-6);
}

TEST(JobReport, SaysItInOneLine) {
  EXPECT_EQ(
      job_text(job_report(large_job(), 11.88)),
      "1.00 Ttok: 32.8 days, 1.61 M GPU-h, 4.03 M$ at 2.50 $/GPU-h, GPUs at their power limit x PUE 1.12: 1263 MWh "
      "(ETTR 1.0; not a calendar estimate)");
}

TEST(JobReport, LeavesOutWhatIsNotKnown) {
  plan::Scenario s = large_job();
  s.job->price.reset();
  s.cluster.node.device.power_limit = 0;
  const JobReport job = job_report(s, 11.88);
  EXPECT_FALSE(job.cost_dollars.has_value());
  EXPECT_FALSE(job.energy_mwh.has_value());
  EXPECT_EQ(job_text(job), "1.00 Ttok: 32.8 days, 1.61 M GPU-h (ETTR 1.0; not a calendar estimate)");
}

TEST(JobReport, RoundsUpToWholeSteps) {
  plan::Scenario s = large_job();
  s.job->tokens = 4194304;
  EXPECT_EQ(job_report(s, 1).steps, 1);
  s.job->tokens = 4194305;
  EXPECT_EQ(job_report(s, 1).steps, 2);
}

}  // namespace
}  // namespace stepcast::report
