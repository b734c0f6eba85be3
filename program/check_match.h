// Which op meets which: collectives by their number on (group, channel), messages by their number on (group, channel,
// sender, receiver). Both are functions of the programs of a group's members alone, so groups whose members run the
// same programs are matched once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "program/check_parts.h"
#include "program/program.h"
#include "program/resolve.h"

namespace stepcast::program {

// A part of a message op.
struct PartRef {
  std::uint32_t op = 0;  // flat op of the member's program
  std::uint16_t part = 0;
};

// Communication of one rank program, in issue order; by role * kChannelCount + channel.
struct CommunicationLists {
  std::vector<std::vector<std::uint32_t>> collectives;
  std::vector<std::vector<PartRef>> parts;
};

// Member indices of the two ends of messages.
struct MessagePair {
  std::uint32_t sender = 0;
  std::uint32_t receiver = 0;
  auto operator<=>(const MessagePair&) const = default;
};

// Flat ops of the two ends of a message.
struct MessageOps {
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
};

// The messages between members of which the senders run one program and the receivers one, at one distance around the
// group: the same ops for each pair, as between all neighbours of a ring.
struct MessageMatch {
  std::vector<MessagePair> pairs;  // ascending; not empty
  std::vector<MessageOps> ops;     // in issue order
};

struct Matching {
  std::vector<CommunicationLists> lists;            // by RankProgramId
  std::vector<GroupClass> classes;                  // as given
  std::vector<std::vector<MessageMatch>> messages;  // by class; a channel after the other
};

// Adds what does not match to `problems`. Needs a structurally sound Program.
Matching match(const Program& p, const std::vector<Resolution>& resolutions, std::vector<GroupClass> classes,
               ProblemList& problems);

}  // namespace stepcast::program
