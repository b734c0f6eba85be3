# Data files embedded in the binary: the presets work wherever the binary is copied.

set(STEPCAST_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake)

# stepcast_embed(TARGET): adds to TARGET the generated definition of stepcast::config::embedded_files() (declared in
# config/embedded.h), with every preset under scenarios/models, scenarios/clusters and scenarios/calibrations.
function(stepcast_embed target)
  set(data ${STEPCAST_ROOT}/scenarios)
  file(GLOB files RELATIVE ${data} CONFIGURE_DEPENDS
    ${data}/models/*.json ${data}/models/*.yaml ${data}/clusters/*.yaml ${data}/calibrations/*.yaml)
  list(SORT files)
  list(TRANSFORM files PREPEND ${data}/ OUTPUT_VARIABLE paths)
  set(output ${CMAKE_BINARY_DIR}/generated/embedded_files.cc)
  # The list goes through a file whose content changes only with the list: a removed preset regenerates too.
  set(list_file ${CMAKE_BINARY_DIR}/generated/embedded_files.txt)
  list(JOIN files "\n" lines)
  file(GENERATE OUTPUT ${list_file} CONTENT "${lines}\n")
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DDATA=${data} -DLIST=${list_file} -DOUTPUT=${output} -P ${STEPCAST_EMBED_SCRIPT}
    DEPENDS ${paths} ${list_file} ${STEPCAST_EMBED_SCRIPT}
    COMMENT "Embedding the presets of scenarios/"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
