# One static library per folder, one test binary per folder.

get_filename_component(STEPCAST_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

# Floating-point contraction off: the same input gives the same bytes on every machine.
set(STEPCAST_COMPILE_OPTIONS -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND STEPCAST_COMPILE_OPTIONS -Werror)
  # These depend on what the optimiser inlined and are often false inside libstdc++ (GCC bug 105651, for one).
  list(APPEND STEPCAST_COMPILE_OPTIONS -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-array-bounds -Wno-error=maybe-uninitialized)
endif()

if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Where sources are compiled several at a time, GCC takes what is included for a header's text.
  list(APPEND STEPCAST_COMPILE_OPTIONS -Wno-subobject-linkage)
endif()

# nvcc has a tongue of its own: what its host compiler is to warn of goes through -Xcompiler. (-Wconversion would speak
# of the host code that nvcc generates.)
list(JOIN STEPCAST_COMPILE_OPTIONS "$<SEMICOLON>" STEPCAST_CXX_OPTIONS)
set(STEPCAST_COMPILE_OPTIONS
  "$<$<COMPILE_LANGUAGE:CXX>:${STEPCAST_CXX_OPTIONS}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>")

# A precompiled header that does not match is only slower, never an error.
set(CMAKE_PCH_WARN_INVALID OFF)

# stepcast_library(NAME SOURCES a.cc ... DEPS lib ... [PRIVATE_DEPS lib ...] [PCH <yaml-cpp/yaml.h> ...]): the library
# stepcast_NAME. PCH names heavy third-party headers that several sources of the folder include.
function(stepcast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;PCH" ${ARGN})
  add_library(stepcast_${name} STATIC ${ARG_SOURCES})
  target_include_directories(stepcast_${name} PUBLIC ${STEPCAST_ROOT})
  target_compile_options(stepcast_${name} PRIVATE ${STEPCAST_COMPILE_OPTIONS})
  target_link_libraries(stepcast_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  if(ARG_PCH)
    target_precompile_headers(stepcast_${name} PRIVATE ${ARG_PCH})
  endif()
endfunction()

# stepcast_test(NAME SOURCES a_test.cc ... DEPS lib ... [LABEL unit] [TIMEOUT 300] [RANKS n] [LAUNCHER script]): the test binary NAME_test, run by
# ctest as NAME, with RANKS by so many processes of MPI; under a sanitizer it may take four times as long. All test binaries share one precompiled gtest header.
function(stepcast_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;RANKS;LAUNCHER" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  stepcast_test_header()
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${STEPCAST_ROOT})
  target_compile_options(${name}_test PRIVATE ${STEPCAST_COMPILE_OPTIONS})
  target_compile_definitions(${name}_test PRIVATE STEPCAST_SOURCE_DIR="${STEPCAST_ROOT}")
  target_precompile_headers(${name}_test REUSE_FROM stepcast_test_header)
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  if(ARG_RANKS)
    set(ARG_LAUNCHER ${STEPCAST_ROOT}/tests/mpi_run ${ARG_RANKS})
  endif()
  if(ARG_LAUNCHER)
    add_test(NAME ${name} COMMAND ${ARG_LAUNCHER} $<TARGET_FILE:${name}_test>)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)
  else()
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
  if(STEPCAST_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# The owner of the precompiled gtest header, made at the first stepcast_test().
function(stepcast_test_header)
  if(TARGET stepcast_test_header)
    return()
  endif()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/test_header.cc CONTENT "// Owns the precompiled gtest header.\n")
  add_library(stepcast_test_header OBJECT ${CMAKE_BINARY_DIR}/generated/test_header.cc)
  target_include_directories(stepcast_test_header PRIVATE ${STEPCAST_ROOT})
  target_compile_options(stepcast_test_header PRIVATE ${STEPCAST_COMPILE_OPTIONS})
  target_compile_definitions(stepcast_test_header PRIVATE STEPCAST_SOURCE_DIR="${STEPCAST_ROOT}")
  target_precompile_headers(stepcast_test_header PRIVATE <gtest/gtest.h>)
  target_link_libraries(stepcast_test_header PRIVATE GTest::gtest)
endfunction()
