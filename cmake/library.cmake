# libfagen: fagen::fagen (shared), fagen::static and fagen::launch, the names that the installed package gives as well.
#
# fagen_static is for this tree: the rooms' objects with every symbol, for the command and the tests.
#
# What others link comes from one relocatable object, fagen.o: the rooms together with what they use of Lua, jansson and xxHash,
# and every name made local but the FA_API ones of fagen.h. libfagen.a is that object, so that users link no other archive and
# meet no foreign symbol; libfagen.so is linked from it. (Debian builds those archives for executables, not for shared objects:
# what keeps them out of one are the references to stdin, stdout and stderr, which merge.cmake turns to cmake/streams.c.)
set(fa_folders gen cache sim runtime verify autotune)
set(fa_system m ${CMAKE_DL_LIBS} pthread)
fa_objects_of(fa_objects ${fa_folders})

add_library(fagen_static STATIC ${fa_objects})
set_target_properties(fagen_static PROPERTIES OUTPUT_NAME fagen_rooms LINKER_LANGUAGE C)
target_link_libraries(fagen_static PUBLIC fagen::lua fagen::jansson fagen::xxhash ${fa_system})

add_library(fagen_streams OBJECT ${CMAKE_CURRENT_LIST_DIR}/streams.c)
target_link_libraries(fagen_streams PRIVATE fagen_flags)

set(fa_merged ${PROJECT_BINARY_DIR}/fagen.o)
add_custom_command(
  OUTPUT ${fa_merged}
  COMMAND ${CMAKE_COMMAND} -DOUT=${fa_merged} -DLD=${CMAKE_LINKER} -DOBJCOPY=${CMAKE_OBJCOPY} -DHEADER=${PROJECT_SOURCE_DIR}/runtime/fagen.h
          "-DOBJECTS=${fa_objects}" "-DARCHIVES=${fa_lua_library};${fa_jansson_library};${fa_xxhash_library}"
          -DSTREAMS=$<TARGET_OBJECTS:fagen_streams> -P ${CMAKE_CURRENT_LIST_DIR}/merge.cmake
  DEPENDS ${fa_objects} $<TARGET_OBJECTS:fagen_streams> ${PROJECT_SOURCE_DIR}/runtime/fagen.h ${CMAKE_CURRENT_LIST_DIR}/merge.cmake
  VERBATIM)

foreach(kind archive shared)
  string(REPLACE archive STATIC type ${kind})
  string(TOUPPER ${type} type)
  add_library(fagen_${kind} ${type} ${fa_merged})
  set_target_properties(fagen_${kind} PROPERTIES OUTPUT_NAME fagen LINKER_LANGUAGE C)
endforeach()
set_source_files_properties(${fa_merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(fagen_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${fa_abi})
target_link_libraries(fagen_shared PRIVATE ${fa_system} fagen_flags)
target_link_options(fagen_shared PRIVATE -Wl,-z,defs,-z,now,-z,relro)
if(FAGEN_SANITIZE OR CMAKE_C_FLAGS MATCHES "-fsanitize") # its runtime is the executable's
  target_link_options(fagen_shared PRIVATE -Wl,-z,undefs)
endif()
add_dependencies(fagen_archive fagen_shared) # one of them makes fagen.o
# Makefiles know the objects of other folders only by their targets.
fa_targets(fa_room_targets ${fa_folders})
add_dependencies(fagen_shared ${fa_room_targets} fagen_streams)

# libfagen_launch.a: fa_launch() and what it stands on, for programs that ship bundles: no template, Lua, NVRTC, tuner or disk cache is in
# it. Made as libfagen.a is, of the rooms' objects without the JIT.
set(fa_made_here "/(build|choose|choosing|considered|facts|generators|neighbour|relatives|shipped_rows|select_jit|compiler|step_text|workers|nvrtc|jit|make)[.]c[.]")
fa_objects_of(fa_runtime_objects runtime)
list(TRANSFORM fa_runtime_objects REPLACE "(.+)" "$<FILTER:\\1,EXCLUDE,${fa_made_here}>")
set(fa_launch_objects $<TARGET_OBJECTS:fagen_launch_only> ${fa_runtime_objects}
  $<FILTER:$<TARGET_OBJECTS:fagen_gen>,INCLUDE,/\(apply|arch|arithmetic|batch_kind|bucket|bucket_digits|config|declare|derive|distance|error|expression|extent|fields|format|head_slices|ir|issue|known|lexer|lower|names|operation|pairs|philox|planes|print_cuda|problem|problem_append|problem_fields|problem_low_bits|problem_names|problem_normalize|problem_parse|problem_score|program|range|reach|read_expression|reader|reads|ruler|shape|shape_rulers|slope|source|splits|statement|step|sum|text|thread|tile_rounds|tree|values|workspace\)[.]c[.]>
  $<FILTER:$<TARGET_OBJECTS:fagen_cache>,INCLUDE,/key[.]c[.]> $<TARGET_OBJECTS:fagen_sim>)
set(fa_launch ${PROJECT_BINARY_DIR}/fagen_launch.o)
add_custom_command(
  OUTPUT ${fa_launch}
  COMMAND ${CMAKE_COMMAND} -DOUT=${fa_launch} -DLD=${CMAKE_LINKER} -DOBJCOPY=${CMAKE_OBJCOPY} -DHEADER=${PROJECT_SOURCE_DIR}/runtime/fagen.h
          "-DOBJECTS=${fa_launch_objects}" "-DARCHIVES=${fa_xxhash_library}" -DSTREAMS=$<TARGET_OBJECTS:fagen_streams>
          -P ${CMAKE_CURRENT_LIST_DIR}/merge.cmake
  DEPENDS ${fa_launch_objects} $<TARGET_OBJECTS:fagen_streams> ${PROJECT_SOURCE_DIR}/runtime/fagen.h ${CMAKE_CURRENT_LIST_DIR}/merge.cmake
  VERBATIM)
add_library(fagen_launch STATIC ${fa_launch})
set_target_properties(fagen_launch PROPERTIES LINKER_LANGUAGE C)
set_source_files_properties(${fa_launch} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
fa_targets(fa_launch_targets gen cache sim runtime)
add_dependencies(fagen_launch fagen_launch_only ${fa_launch_targets} fagen_streams)

# The names of the package, for projects that take this folder in by add_subdirectory() or FetchContent. CMake's targets are global:
# those of the tree begin with fagen_.
foreach(row "fagen fagen_shared" "static fagen_archive" "launch fagen_launch")
  separate_arguments(row UNIX_COMMAND "${row}")
  list(GET row 0 name)
  list(GET row 1 target)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${fa_views}/api>)
  add_library(fagen::${name} ALIAS ${target})
endforeach()
target_link_libraries(fagen_archive INTERFACE ${fa_system})
target_link_libraries(fagen_launch INTERFACE ${fa_system})
include(${CMAKE_CURRENT_LIST_DIR}/fagenBundle.cmake)
