// Names that people paste from other tools: brought to the schema's own names before anything else looks at the tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/document.h"

namespace stepcast::plan {

// Renames and moves aliases in one layer of a scenario (its root, plan, training and model sections) and expands short
// forms that are not plain renames. Adds one note per alias. Problems: an alias beside the name it stands for; names
// that mean something else in the other tool.
void canonicalise_names(config::Node& layer, ProblemList& problems, std::vector<std::string>& notes);

// The field that `field` is another name for: plan.vp for plan.vpp and for vpp; any other is itself.
std::string canonical_field(std::string_view field);

}  // namespace stepcast::plan
