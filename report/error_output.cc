// Errors as JSON.
#include "report/error_output.h"

#include "report/json.h"

namespace stepcast::report {

std::string error_json(const Error& error) {
  return to_text(Json{
      {"schema", "stepcast/error/1"}, {"exit_code", error.exit_code()}, {"problems", problems_json(error.problems())}});
}

}  // namespace stepcast::report
