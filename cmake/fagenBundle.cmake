# fagen_bundle(target NAME name EMIT argument...)
#
# Adds to the target a C file, made by `fagen emit --bundle argument... --name name` when it is not there, that defines
# `const fa_bundle name`. NVRTC is needed where it is made, not where it runs. The project has the language C. For example
#
#     fagen_bundle(engine NAME attention EMIT -d 64,128 --mask none,causal --arch sm_80,sm_90a)
#     target_link_libraries(engine PRIVATE fagen::launch)
function(fagen_bundle target)
  cmake_parse_arguments(B "" "NAME" "EMIT" ${ARGN})
  if(NOT B_NAME OR B_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fagen_bundle(${ARGV}): accepted: fagen_bundle(target NAME name EMIT argument...)")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages) # it cannot be enabled from inside a function
    message(FATAL_ERROR "fagen_bundle(${target}): the bundle is a C file, and the project has no C: its languages are ${languages}; "
                        "accepted: project(... LANGUAGES C CXX), or enable_language(C) in front of the call")
  endif()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${B_NAME}.c)
  add_custom_command(OUTPUT ${file} COMMAND fagen::command emit --bundle --quiet ${B_EMIT} --name ${B_NAME} -o ${file} DEPENDS fagen::command VERBATIM)
  target_sources(${target} PRIVATE ${file})
endfunction()
