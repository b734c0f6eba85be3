// The processes that MPI's launcher has started.
#pragma once

#include "exec/mpi/port.h"
#include "exec/world.h"

namespace stepcast::exec {

class MpiWorld : public World {
 public:
  int rank() const override { return port_.rank(); }
  int size() const override { return port_.size(); }
  HostPlace place() const override { return port_.place(); }
  std::shared_ptr<Communicators> communicators(const program::Program& p) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  std::string broadcast(const std::string& bytes) override;
  void end_all(int code) override;

 private:
  Port port_;
};

}  // namespace stepcast::exec
