// The processes that execute a plan together, one rank each. What a launcher is behind it, such as MPI, is known to the
// program alone that links it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace stepcast::exec {

class Communicators;

// A process among those of its host that may use the same cores as it, by rank. A launcher that has bound each process
// to cores of its own leaves it alone there.
struct HostPlace {
  int index = 0;
  int count = 1;
};

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual HostPlace place() const = 0;
  // Of rank(); the world must outlive them.
  virtual std::shared_ptr<Communicators> communicators(const program::Program& p) = 0;
  // All processes call it: rank 0 gets everybody's bytes by rank, the others nothing.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  // All processes call it: everybody gets rank 0's bytes.
  virtual std::string broadcast(const std::string& bytes) = 0;
  // Ends all processes, this one with `code`.
  virtual void end_all(int code) = 0;
};

}  // namespace stepcast::exec
