// What choosing paths costs: the share of the links above the leaves that flows fill.
//
// Few long flows that a hash spreads over many equal links leave some of them idle while others hold two. With n links,
// n NICs that send at full rate and q queue pairs per connection, each hashed on its own, a link holds X of the n q
// flows, each of rate 1/q: X is Poisson of mean q for large n. A link carries at most its rate, so all of them together
// carry E[min(X, q)] / q = 1 - e^-q q^q / q! of what they could:
//
//   queue pairs      1      2      4      8     16
//   share filled  0.632  0.729  0.805  0.860  0.901
//
// It is a mean over links: messages take turns over queue pairs and channels, so no connection stays on its worst link.
// Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale" (SIGCOMM 2024), report up to 40 % more
// all-reduce bandwidth from hashing on the queue pair with more of them; 16 against 1 is 43 % here. No figure is
// fitted.
//
// Adaptive routing (and EFA's SRD, which sprays packets) fills all links; static routes of whole units do not collide
// on shift patterns such as rings (Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on
// real life fat trees", 2010). Both count as 1: what is lost there is in the NIC's efficiency.
#pragma once

#include <cstdint>

#include "topology/cluster.h"

namespace stepcast::topology {

// In (0, 1]. kEcmp hashes addresses and ports only: the queue pairs of a connection count as one flow. queue_pairs
// >= 1.
double routing_efficiency_of(Routing routing, std::int32_t queue_pairs);

}  // namespace stepcast::topology
