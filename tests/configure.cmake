# cmake -DSOURCE=folder of fagen -DCUDA=folder of cuda.h -DWORK=scratch -P configure.cmake
# The line of README by which users build, as on a machine without Criterion; and what cannot be configured, with its message.
# With -DCLANG=clang, and only: clang has no complaint about any file, warnings as errors; nothing is linked. By default every sixth
# file, with FAGEN_TEST_FULL=1 all.
cmake_minimum_required(VERSION 3.19)
file(REMOVE_RECURSE ${WORK})

function(fa_run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${ARGN}\n${text}")
  endif()
endfunction()

# The command fails, and says so.
function(fa_refused says)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(FIND "${text}" "${says}" at)
  if(NOT failed OR at EQUAL -1)
    message(FATAL_ERROR "${ARGN}\n${failed}, expected: a failure that says \"${says}\"\n${text}")
  endif()
endfunction()

if(CLANG)
  fa_run(${CMAKE_COMMAND} -G Ninja -S . -B ${WORK} -DCMAKE_C_COMPILER=${CLANG} -DCMAKE_BUILD_TYPE=None -DFAGEN_WERROR=ON -DFAGEN_BUILD_TESTS=ON
    -DFAGEN_CUDA_INCLUDE=${CUDA} -DCMAKE_C_COMPILER_LAUNCHER=)
  file(STRINGS ${WORK}/compile_commands.json lines REGEX "\"command\": ")
  list(FILTER lines EXCLUDE REGEX "-c ${WORK}/") # made by the build
  list(LENGTH lines n)
  if(n LESS 300)
    message(FATAL_ERROR "compile_commands.json has ${n} files; expected: all of the tree")
  endif()
  set(commands "")
  set(turn 0)
  foreach(line ${lines})
    if(NOT "$ENV{FAGEN_TEST_FULL}")
      math(EXPR turn "(${turn} + 1) % 6")
      if(turn)
        continue()
      endif()
    endif()
    string(REGEX REPLACE "^ *\"command\": \"(.*)\",$" "\\1" line "${line}")
    string(REGEX REPLACE " -o [^ ]+ -c " " -fsyntax-only " line "${line}")
    string(REGEX REPLACE "\\\\(.)" "\\1" line "${line}") # JSON's
    string(APPEND commands "${line}\n")
  endforeach()
  file(WRITE ${WORK}/commands "${commands}")
  fa_run(sh -c "xargs -P 2 -d '\\n' -n 1 sh -c <'${WORK}/commands'")
  return()
endif()

fa_run(${CMAKE_COMMAND} --preset release -B ${WORK}/bare -DFAGEN_CRITERION=OFF -DFAGEN_CUDA_INCLUDE=${CUDA})
load_cache(${WORK}/bare READ_WITH_PREFIX its_ FAGEN_BUILD_TESTS FAGEN_WERROR FAGEN_INSTALL CMAKE_BUILD_TYPE)
if(its_FAGEN_BUILD_TESTS OR its_FAGEN_WERROR OR NOT its_FAGEN_INSTALL OR NOT its_CMAKE_BUILD_TYPE STREQUAL "Release")
  message(FATAL_ERROR "without Criterion: tests ${its_FAGEN_BUILD_TESTS}, warnings as errors ${its_FAGEN_WERROR}, install ${its_FAGEN_INSTALL}, "
    "type ${its_CMAKE_BUILD_TYPE}; expected: off, off, on, Release")
endif()
fa_run(${CMAKE_COMMAND} --build ${WORK}/bare --target fagen_cache)
fa_run(${CMAKE_COMMAND} --preset dev -B ${WORK}/dev -DFAGEN_CRITERION=OFF -DFAGEN_CUDA_INCLUDE=${CUDA})
load_cache(${WORK}/dev READ_WITH_PREFIX its_ FAGEN_WERROR)
if(NOT its_FAGEN_WERROR)
  message(FATAL_ERROR "the preset dev does not take warnings as errors")
endif()

fa_refused("apt-get install libcriterion-dev" ${CMAKE_COMMAND} --preset release -B ${WORK}/tests -DFAGEN_CRITERION=OFF -DFAGEN_BUILD_TESTS=ON
  -DFAGEN_CUDA_INCLUDE=${CUDA})
fa_refused("fagen: the generator is \"Ninja Multi-Config\"; accepted:" ${CMAKE_COMMAND} -G "Ninja Multi-Config" -S . -B ${WORK}/multi
  -DFAGEN_CUDA_INCLUDE=${CUDA})
