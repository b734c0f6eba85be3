# Protocol Buffers messages: each .proto lies in the folder that owns the concept, all are compiled into one library.

# stepcast_proto(plan/scenario.proto ...): the library stepcast_proto. Paths are relative to the root, and so are imports
# ("plan/scenario.proto") and the generated headers ("plan/scenario.pb.h"). Generated code is compiled without warnings.
function(stepcast_proto)
  set(generated ${CMAKE_BINARY_DIR}/generated)
  set(sources "")
  list(TRANSFORM ARGN PREPEND ${STEPCAST_ROOT}/ OUTPUT_VARIABLE protos)
  foreach(proto IN LISTS ARGN)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(outputs ${generated}/${stem}.pb.cc ${generated}/${stem}.pb.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
      COMMAND protobuf::protoc -I ${STEPCAST_ROOT} --cpp_out=${generated} ${proto}
      WORKING_DIRECTORY ${STEPCAST_ROOT}
      # Every .proto: an imported file that changes must regenerate its users.
      DEPENDS ${protos}
      COMMENT "protoc ${proto}"
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  # Only the generated text, for tools that read the sources without building them.
  add_custom_target(stepcast_generated DEPENDS ${sources})
  if(sources)
    add_library(stepcast_proto STATIC ${sources})
    target_compile_options(stepcast_proto PRIVATE -w)
    set_target_properties(stepcast_proto PROPERTIES UNITY_BUILD OFF)  # generated files repeat each other's names
    set(scope PUBLIC)
  else()
    add_library(stepcast_proto INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(stepcast_proto SYSTEM ${scope} ${generated})
  target_link_libraries(stepcast_proto ${scope} protobuf::libprotobuf)
endfunction()
