// How the processes of a job find each other without MPI: rank 0 listens, the others connect and say who they are, and
// when all are there everybody is told. Who comes late, twice or from another job is refused by name; what is no rank
// of stepcast is passed over.
#pragma once

#include <string>
#include <vector>

#include "exec/launched_rank.h"
#include "exec/tcp_socket.h"

namespace stepcast::exec {

struct Meeting {
  LaunchedRank self;
  std::chrono::milliseconds patience{60000};  // until all are there
};

// Of rank 0, which has `listener`: a socket for each rank, the own one closed. Throws Error (kEnvironment) naming the
// ranks that have not come in time.
std::vector<Socket> meet_as_first(const Meeting& meeting, const Socket& listener);

// Of another rank: the socket to rank 0. Throws Error (kEnvironment) where rank 0 is not reached in time, where another
// program answers, where rank 0 refuses this one, or where others have not come.
Socket meet_as_other(const Meeting& meeting);

// "1, 3 to 7" of ascending numbers.
std::string ranges_text(const std::vector<int>& numbers);

}  // namespace stepcast::exec
