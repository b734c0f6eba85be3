// Communicators of a rank that is a process, its peers being others: non-blocking messages between each two members.
//
// Collectives are direct: every member sends each other one its part. That moves as many bytes as a ring does and adds
// up in member order, so that the result has the bits of the one that threads compute (thread_communicator.h). A
// message is over when the receiver has said so, as it is between threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "exec/communicator.h"
#include "exec/mpi/port.h"

namespace stepcast::exec {

// Of rank port.rank() of `p`, whose other ranks are the first of the port's processes; there may be more of these.
// `port` must outlive them. Throws Error (kEnvironment) when this MPI has fewer tags than
// the Program has groups and channels.
std::shared_ptr<Communicators> mpi_communicators(const program::Program& p, Port& port);

}  // namespace stepcast::exec
