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
fa_run(${bare} ${WORK}/ampere nearest sim:sm_80)
fa_run(${bare} ${WORK}/ampere first sim:sm_86)
fa_run(${COMMAND} emit --bundle --raw -d 64 --mask none,causal --arch compute_80,sm_80,sm_90a -n 128 -o ${WORK}/ampere.bundle)
fa_run(${bare} ${WORK}/ampere faults sim:sm_80 ${WORK}/ampere.bundle)

# The bytes of both kinds of file are the same; the C files of two bundles may be compiled as one, or as C++ with the types compared.
file(WRITE ${WORK}/dump.c "#include \"hopper.c\"\n#include \"ampere.c\"\n#include <stdio.h>\n"
  "int main(void) { return fwrite(ampere.word, 1, ampere.bytes, stdout) != ampere.bytes || &hopper == &ampere; }\n")
fa_run(${CC} -std=c99 ${warnings} -I${INCLUDE} ${WORK}/dump.c -o ${WORK}/dump)
execute_process(COMMAND ${WORK}/dump OUTPUT_FILE ${WORK}/dumped RESULT_VARIABLE failed)
fa_run(${CMAKE_COMMAND} -E compare_files ${WORK}/dumped ${WORK}/ampere.bundle)
file(WRITE ${WORK}/empty.c "int main() { return 0; }\n")
execute_process(COMMAND ${CXX} -flto -x c++ ${WORK}/empty.c -o ${WORK}/empty RESULT_VARIABLE no_lto OUTPUT_QUIET ERROR_QUIET)
if(no_lto)
  message("${CXX} links nothing with -flto: types are not compared")
else()
  fa_run(${CXX} -std=c++11 -O1 -flto ${warnings} -Wodr -x c++ -I${INCLUDE} -DBUNDLE=ampere ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/ampere.c ${WORK}/hopper.c -x none
         ${ARCHIVE} ${system} -o ${WORK}/lto)
  fa_run(${CXX} -std=c++11 ${warnings} -x c++ -I${INCLUDE} -DBUNDLE=ampere ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/ampere.c -x none ${SHARED} ${system} -o ${WORK}/cxx)
endif()

# The library that only launches: the same program, and nothing in it that could make a kernel.
fa_run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE pc ${WORK}/prefix/fagen_launch.pc)
get_filename_component(folder ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${folder})
fa_run(sh -c "${CC} -DBUNDLE=counter ${CMAKE_CURRENT_LIST_DIR}/app.c ${WORK}/counter.o $(pkg-config --cflags --libs fagen_launch) -o ${WORK}/launch")
fa_run(${bare} ${WORK}/launch first sim:sm_90a)
fa_run(${bare} ${WORK}/launch nearest sim:sm_90a)
fa_run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_C_COMPILER=${CC})
fa_run(${CMAKE_COMMAND} --build ${WORK}/build)
fa_run(${bare} ${WORK}/build/app only sim:sm_80)
fa_run(${bare} ${WORK}/build/app first sim:sm_86)
fa_run(${bare} ${WORK}/build/app faults sim:sm_80 ${WORK}/ampere.bundle)
foreach(library ARCHIVE LAUNCH)
  file(STRINGS ${${library}} maker REGEX "libnvrtc|Lua|flash_fwd_mma|json")
  if((maker AND library STREQUAL LAUNCH) OR (NOT maker AND library STREQUAL ARCHIVE))
    message(FATAL_ERROR "${${library}} has of what makes kernels: ${maker}")
  endif()
endforeach()

get_filename_component(folder ${SHARED} DIRECTORY)
fa_run(${bare} LD_LIBRARY_PATH=${folder} ${WORK}/cxx only sim:sm_80)

# A C file of before, or a header of before, ends in a message.
function(fa_refused says folder file)
  execute_process(COMMAND ${CC} -std=c99 -I${folder} -c ${file} -o ${WORK}/refused.o RESULT_VARIABLE failed ERROR_VARIABLE text)
  if(NOT failed OR NOT text MATCHES "${says}")
    message(FATAL_ERROR "${file} with ${folder}: ${failed}: ${text}; expected: ${says}")
  endif()
endfunction()
file(WRITE ${WORK}/format2.c "#include <fagen.h>\n#if FA_BUNDLE_FORMAT != 2\n#error \"fagen.h is of another version than this bundle: emit it anew\"\n#endif\n"
  "static const fa_bundle_row rows[] = { { \"bf16,d=64\", \"why\", 0 } };\n")
fa_refused("another version than this bundle: emit it anew" ${INCLUDE} ${WORK}/format2.c)
file(WRITE ${WORK}/before/fagen.h "#include <stdint.h>\n#define FA_BUNDLE_FORMAT 2\ntypedef struct fa_bundle { uint32_t size, format; } fa_bundle;\n")
fa_refused("fagen.h is of an older version than this bundle, which has format 3" ${WORK}/before ${WORK}/counter.c)

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
