# fa_room(NAME SEES folder... SOURCES file... LINKS target...)
#
# One OBJECT library, fagen_NAME, of one folder. Its include path holds a view of itself and of the folders it names, each as
# a link in the build tree, so that `#include "gen/space.h"` from gen's left neighbour, or from a folder that does not name
# gen, fails to compile. The public header is the contract that every folder sees: <fagen.h>.
#
# A folder may have rooms: NAME is then "verify/truth", the library fagen_verify_truth, and its SEES names those of its neighbours that it
# may include ("verify/operands"). A folder that names "verify" sees all rooms of it. SOURCES are relative to the outer folder.
#
# fa_targets(OUT folder...), fa_objects_of(OUT folder...): the libraries of folders, of all their rooms; and the objects of these.
set(fa_views ${PROJECT_BINARY_DIR}/views)
file(MAKE_DIRECTORY ${fa_views}/api)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/runtime/fagen.h ${fa_views}/api/fagen.h SYMBOLIC)

function(fa_view out folder)
  string(REPLACE "/" "." name ${folder})
  set(view ${fa_views}/${name})
  if(NOT EXISTS ${view}/${folder})
    cmake_path(GET folder PARENT_PATH outer)
    file(MAKE_DIRECTORY ${view}/${outer})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${view}/${folder} SYMBOLIC)
  endif()
  set(${out} ${view} PARENT_SCOPE)
endfunction()

add_library(fagen_flags INTERFACE)
target_compile_definitions(fagen_flags INTERFACE _GNU_SOURCE FA_VERSION_STRING="${PROJECT_VERSION}")
target_include_directories(fagen_flags INTERFACE ${fa_views}/api)
target_compile_options(fagen_flags INTERFACE -fno-lto) # the objects are joined by `ld -r`
if(PROJECT_IS_TOP_LEVEL OR FAGEN_WERROR)
  target_compile_options(fagen_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla)
else() # the warnings of a parent project, which may be errors there, are meant for its own sources
  target_compile_options(fagen_flags INTERFACE -w)
endif()
if(FAGEN_WERROR)
  target_compile_options(fagen_flags INTERFACE -Werror)
endif()
if(FAGEN_SANITIZE STREQUAL "thread")
  target_compile_options(fagen_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(fagen_flags INTERFACE -fsanitize=thread)
elseif(FAGEN_SANITIZE)
  target_compile_options(fagen_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(fagen_flags INTERFACE -fsanitize=address,undefined)
endif()

if(FAGEN_FUZZ)
  target_compile_options(fagen_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer -g -UNDEBUG)
  target_link_options(fagen_flags INTERFACE -fsanitize=address,undefined)
endif()

if(FAGEN_PORTABLE) # all other libraries are static in every build
  target_link_options(fagen_flags INTERFACE -static-libgcc -s)
endif()

function(fa_room name)
  cmake_parse_arguments(R "" "" "SEES;SOURCES;LINKS" ${ARGN})
  string(REPLACE "/" "_" target fagen_${name})
  string(REGEX REPLACE "/.*" "" outer ${name})
  set_property(GLOBAL APPEND PROPERTY fa_targets_${outer} ${target})
  string(REPLACE ";" " " sees "${R_SEES}")
  set_property(GLOBAL APPEND PROPERTY fa_rooms "${name}: ${sees}\n")
  add_library(${target} OBJECT ${R_SOURCES})
  foreach(folder ${name} ${R_SEES})
    fa_view(view ${folder})
    target_include_directories(${target} PRIVATE ${view})
  endforeach()
  target_link_libraries(${target} PRIVATE fagen_flags ${R_LINKS})
endfunction()

# Every room, with what it sees: what the suite `calls` holds the objects and the sources to.
function(fa_write_rooms file)
  get_property(rooms GLOBAL PROPERTY fa_rooms)
  file(WRITE ${file}.new ${rooms})
  file(COPY_FILE ${file}.new ${file} ONLY_IF_DIFFERENT)
  file(REMOVE ${file}.new)
endfunction()

function(fa_targets out)
  set(all "")
  foreach(folder ${ARGN})
    get_property(targets GLOBAL PROPERTY fa_targets_${folder})
    list(APPEND all ${targets})
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

function(fa_objects_of out)
  fa_targets(all ${ARGN})
  list(TRANSFORM all REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  set(${out} ${all} PARENT_SCOPE)
endfunction()
