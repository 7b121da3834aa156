# cmake -DBUILD=build/release -DCOMMAND=fagen -DARCHIVE=libfagen.a -DLAUNCH=libfagen_launch.a -DSHARED=libfagen.so -DINCLUDE=folder of fagen.h -DCC=cc -DCXX=c++ -DGENERATOR=Ninja -DWORK=scratch -P run.cmake
# With -DDEVICE=cuda:0 also, and only, a bundle of cubins for that GPU and one of PTX for sm_80, which its driver compiles; without a GPU it
# says "no GPU".
#
# Emits bundles, compiles each as C99 and as C++11, and runs the programs on the simulator where there is no NVRTC, no template that can
# be loaded, and no disk cache: nothing but the bundle can have made the kernels.
cmake_minimum_required(VERSION 3.19)
function(fa_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${ARGN}\n${failed}\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/templates)
file(WRITE ${WORK}/templates/flash_fwd_mma.lua "error('a template was loaded')\n")
set(bare ${CMAKE_COMMAND} -E env FAGEN_NVRTC=/nonexistent FAGEN_TEMPLATE_DIR=${WORK}/templates FAGEN_CACHE_DIR=${WORK}/cache HOME=/nonexistent)
set(warnings -Wall -Wextra -Wpedantic -Werror)
set(system -lm -ldl -lpthread)

if(DEVICE)
  execute_process(COMMAND ${COMMAND} show -d 64 --device ${DEVICE} --json -q OUTPUT_VARIABLE text RESULT_VARIABLE failed)
  if(failed EQUAL 2)
    message("no GPU")
    return()
  endif()
  string(JSON arch GET "${text}" device arch)
  set(rows "native|${DEVICE}|--arch|${arch}|-n|128,4096" "older|${DEVICE}|--arch|compute_80|-n|128")
else()
  set(rows "ampere|sim:sm_80|--arch|compute_80,sm_80,sm_90a|-n|128" "hopper|sim:sm_90a|--arch|compute_90|-n|128,4096"
           "cluster|sim:sm_90a|--arch|compute_90|--config|flash_fwd_wgmma:cluster=2"
           "counter|sim:sm_90a|--arch|compute_90|--config|flash_fwd_wgmma:grid=2")
endif()

# name, device, arguments of emit
foreach(row ${rows})
  string(REPLACE "|" ";" words "${row}")
  list(POP_FRONT words name device)
  set(file ${WORK}/${name}.c)
  fa_run(${COMMAND} emit --bundle -d 64 --mask none,causal ${words} -o ${file})
  fa_run(${CC} -std=c99 ${warnings} -I${INCLUDE} -c ${file} -o ${WORK}/${name}.o)
  fa_run(${CC} -std=c99 ${warnings} -I${INCLUDE} -DBUNDLE=${name} ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/${name}.o ${ARCHIVE} ${system} -o ${WORK}/${name})
  fa_run(${bare} ${WORK}/${name} only ${device})
endforeach()
if(DEVICE)
  return()
endif()
fa_run(${bare} ${WORK}/ampere only sim:sm_86) # PTX of an older chip, where nothing better is there
if(EXISTS ${WORK}/cache)
  message(FATAL_ERROR "a disk cache was made")
endif()
fa_run(${bare} ${WORK}/ampere first sim:sm_80)
fa_run(${bare} ${WORK}/ampere first sim:sm_86)
fa_run(${bare} ${WORK}/ampere faults sim:sm_80)
fa_run(${CXX} -std=c++11 ${warnings} -x c++ -I${INCLUDE} -DBUNDLE=ampere ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/ampere.c -x none ${SHARED} ${system} -o ${WORK}/cxx)

# The library that only launches: the same program, and nothing in it that could make a kernel.
fa_run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE pc ${WORK}/prefix/fagen_launch.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
fa_run(sh -c "${CC} -DBUNDLE=counter ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/counter.o $(pkg-config --cflags --libs fagen_launch) -o ${WORK}/launch")
fa_run(${bare} ${WORK}/launch first sim:sm_90a)
fa_run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_C_COMPILER=${CC})
fa_run(${CMAKE_COMMAND} --build ${WORK}/build)
fa_run(${bare} ${WORK}/build/app only sim:sm_80)
fa_run(${bare} ${WORK}/build/app first sim:sm_86)
fa_run(${bare} ${WORK}/build/app faults sim:sm_80)
foreach(library ARCHIVE LAUNCH)
  file(STRINGS ${${library}} maker REGEX "libnvrtc|Lua|flash_fwd_mma|json")
  if((maker AND library STREQUAL LAUNCH) OR (NOT maker AND library STREQUAL ARCHIVE))
    message(FATAL_ERROR "${${library}} has of what makes kernels: ${maker}")
  endif()
endforeach()

get_filename_component(folder ${SHARED} DIRECTORY)
fa_run(${bare} LD_LIBRARY_PATH=${folder} ${WORK}/cxx only sim:sm_80)

# The same command gives the same file, and so does the command that the file names.
file(READ ${WORK}/ampere.c first)
string(REGEX MATCH "fagen (emit [^\n]*)" found "${first}")
separate_arguments(again UNIX_COMMAND "${CMAKE_MATCH_1}")
execute_process(COMMAND ${CMAKE_COMMAND} -E make_directory ${WORK}/again)
execute_process(COMMAND ${COMMAND} ${again} WORKING_DIRECTORY ${WORK}/again RESULT_VARIABLE failed ERROR_VARIABLE text)
file(READ ${WORK}/again/ampere.c second)
if(failed OR NOT first STREQUAL second)
  message(FATAL_ERROR "${again}\n${text}\ngives another file")
endif()
