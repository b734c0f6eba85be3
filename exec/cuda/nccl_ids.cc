// See nccl_ids.h. The ids go to rank 0, which puts them in order and sends them back.
#include "exec/cuda/nccl_ids.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "exec/cuda/nccl_try.h"

namespace stepcast::exec {
namespace {

std::size_t maker_of(const std::vector<program::RankId>& members) {
  return std::min_element(members.begin(), members.end())->value;
}

// Those that `rank` makes, one behind the other, in the order of the communicators.
std::string made_by(const CommLayout& layout, std::size_t rank) {
  std::string bytes;
  for (const std::vector<program::RankId>& members : layout.members()) {
    if (maker_of(members) != rank) continue;
    ncclUniqueId id;
    NCCL_TRY(ncclGetUniqueId(&id));
    bytes.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  return bytes;
}

// In the order of the communicators, from what each rank has made.
std::string in_order(const CommLayout& layout, const std::vector<std::string>& by_rank) {
  std::string all;
  std::vector<std::size_t> taken(by_rank.size(), 0);
  for (const std::vector<program::RankId>& members : layout.members()) {
    const std::size_t maker = maker_of(members);
    CHECK(maker < by_rank.size() && taken[maker] < by_rank[maker].size(), maker, by_rank.size());
    all += by_rank[maker].substr(taken[maker], sizeof(ncclUniqueId));
    taken[maker] += sizeof(ncclUniqueId);
  }
  return all;
}

}  // namespace

std::vector<ncclUniqueId> nccl_ids(const CommLayout& layout, World* world) {
  std::vector<ncclUniqueId> ids(layout.members().size());
  if (world == nullptr) {
    for (ncclUniqueId& id : ids) NCCL_TRY(ncclGetUniqueId(&id));
    return ids;
  }
  const std::vector<std::string> by_rank = world->gather(made_by(layout, static_cast<std::size_t>(world->rank())));
  const std::string all = world->broadcast(world->rank() == 0 ? in_order(layout, by_rank) : std::string());
  CHECK(all.size() == ids.size() * sizeof(ncclUniqueId), all.size(), ids.size());
  if (!ids.empty()) std::memcpy(ids.data(), all.data(), all.size());
  return ids;
}

}  // namespace stepcast::exec
