// The benchmarks run on the heap that the program itself runs on.
#include <benchmark/benchmark.h>

#include "base/heap.h"

int main(int argc, char** argv) {
  stepcast::prepare_heap();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
