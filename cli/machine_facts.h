// Gathers what `doctor` judges: this machine, the programs beside stepcast and what each of them says of its libraries
// (`--probe`), mpirun, the environment.
#pragma once

#include "report/doctor_report.h"

namespace stepcast::cli {

// Takes as long as mpirun needs to start a process; what does not answer within ten seconds counts as not working.
report::MachineFacts machine_facts();

}  // namespace stepcast::cli
