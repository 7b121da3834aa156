# cmake -DSOURCE=folder of fagen -DWORK=scratch -DCXX=compiler -P run.cmake
# fagen.h in C++ without a warning of null pointers, and fagen_bundle() in a project with and without C.
file(REMOVE_RECURSE ${WORK})
function(expect word)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}") # messages are wrapped
  if(word STREQUAL "" AND failed)
    message(FATAL_ERROR "${ARGN}\n${text}")
  elseif(NOT word STREQUAL "" AND (NOT failed OR NOT text MATCHES "${word}"))
    message(FATAL_ERROR "${ARGN} does not fail by \"${word}\"\n${text}")
  endif()
endfunction()
expect("" ${CXX} -std=c++11 -Wall -Wextra -Wzero-as-null-pointer-constant -Werror -fsyntax-only -I${SOURCE}/runtime ${SOURCE}/tests/consumer/cxx.cpp)
set(project -S ${CMAKE_CURRENT_LIST_DIR} -DFAGEN_SOURCE=${SOURCE} -DCMAKE_CXX_COMPILER=${CXX})
expect("the project has no C.*enable_language" ${CMAKE_COMMAND} ${project} -B ${WORK}/without)
expect("" ${CMAKE_COMMAND} ${project} -B ${WORK}/with -DC=ON)
